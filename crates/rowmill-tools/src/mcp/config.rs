//! The configuration of servers in `rowmill.toml` and cards.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_core::time_span;
use rowmill_types::{Problem, ProblemCode, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name_filter::NameFilter;
use super::server::{
    ClientCredentials, IdempotentTools, McpParallelLimit, McpProtocolChoice, McpServerSettings, McpTransport,
};

/// An MCP server: `[mcp.servers.NAME]` in `rowmill.toml`, or an entry of `mcp_connect` in a card. Exactly
/// one of `command`, `url` and `target` is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerConfig {
    /// Name, if it does not follow from the position of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For documentation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A command line, an npm package that starts with `@`, or a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Program to start, for a server that is a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment variables; `${NAME}` is replaced by rowmill's environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its working folder, relative to the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// URL of a server that speaks streamable HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request; `${NAME}` is replaced by rowmill's environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Token for the `Authorization` header; `${NAME}` is replaced by rowmill's environment variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
    /// A client-credentials grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<McpClientCredentialsConfig>,
    /// Protocol version: `auto`, `modern` or `legacy`.
    #[serde(default)]
    pub protocol_mode: McpProtocolMode,
    /// Timeout for a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationSetting>,
    /// Timeout for the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<DurationSetting>,
    /// Whether every row gets its own connection.
    #[serde(default)]
    pub per_row: bool,
    /// Names or patterns of the tools to offer; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Names, URIs or patterns of the resources that can be read; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    /// Names or patterns of the prompts that can be fetched; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<String>>,
    /// Which tools may run twice: `true`, `false`, or names and patterns; as declared by the server by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<IdempotentConfig>,
    /// Whether the server's instructions are given to the model; yes by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_instructions: Option<bool>,
    /// Maximum number of calls at once, over all rows: a number, or numbers by names or patterns of
    /// tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<McpParallelLimitConfig>,
    /// What variables put into it before it came here; messages do not show it.
    #[serde(skip)]
    pub from_variables: Vec<Secret>,
}

/// Maximum number of calls at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "MaxParallelConfig")]
pub enum McpParallelLimitConfig {
    /// For all tools together.
    Calls(NonZeroU32),
    /// For the tools that match a name or pattern, together.
    ByTool(BTreeMap<String, NonZeroU32>),
}

/// A client-credentials grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AuthConfig")]
pub struct McpClientCredentialsConfig {
    /// Client id; `${NAME}` is replaced by rowmill's environment variable.
    pub client_id: String,
    /// Client secret; `${NAME}` is replaced by rowmill's environment variable.
    pub client_secret: String,
    /// Requested scopes.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// Which tools may run twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IdempotentConfig {
    /// All or none.
    All(bool),
    /// Those that match one of these names or patterns.
    Only(Vec<String>),
}

/// Protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ProtocolConfig")]
pub enum McpProtocolMode {
    /// Any version that the server supports.
    #[default]
    Auto,
    /// Only without a handshake.
    Modern,
    /// Only with a handshake.
    Legacy,
}

/// A duration: seconds, or a text such as `1.5s` or `2m`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DurationSetting {
    /// Seconds.
    Seconds(f64),
    /// A text with a unit.
    Text(String),
}

impl McpServerConfig {
    /// Resolves the entry to a server. `name` is that of the entry, if it has one; `folder` is the file's
    /// folder, which relative paths start from; `environment` looks up variables.
    ///
    /// # Errors
    ///
    /// It is not clear where the server is, a variable is not set, or a value cannot be used.
    pub fn resolve_server(
        &self,
        name: Option<&str>,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<McpServerSettings, Problem> {
        let name = self.resolved_name(name)?;
        let filled = VariableFiller { server: &name, environment, values: RefCell::default() };
        let transport = self.transport(&name, folder, &filled)?;
        let mut server = McpServerSettings::new(name.clone(), transport);
        server.from_variables = filled.values.into_inner();
        server.from_variables.extend_from_slice(&self.from_variables);
        server.max_parallel =
            self.max_parallel.as_ref().map(McpParallelLimitConfig::limit).unwrap_or_default();
        server.protocol = match self.protocol_mode {
            McpProtocolMode::Auto => McpProtocolChoice::Auto,
            McpProtocolMode::Modern => McpProtocolChoice::Modern,
            McpProtocolMode::Legacy => McpProtocolChoice::Legacy,
        };
        let only = |names: &Option<Vec<String>>| names.clone().map(NameFilter::Only);
        server.tools = only(&self.tools).unwrap_or(NameFilter::Everything);
        server.resources = only(&self.resources).unwrap_or(NameFilter::Nothing);
        server.prompts = only(&self.prompts).unwrap_or(NameFilter::Nothing);
        server.per_row = self.per_row;
        server.instructions = self.include_instructions.unwrap_or(true);
        server.idempotent = match &self.idempotent {
            None => IdempotentTools::ByServer,
            Some(IdempotentConfig::All(true)) => IdempotentTools::All,
            Some(IdempotentConfig::All(false)) => IdempotentTools::None,
            Some(IdempotentConfig::Only(names)) => IdempotentTools::Only(names.clone()),
        };
        for (given, field, what) in [
            (&self.timeout, &mut server.timeout, "timeout"),
            (&self.start_timeout, &mut server.start_timeout, "start_timeout"),
        ] {
            if let Some(span) = given {
                *field = span.duration(&name, what)?;
            }
        }
        Ok(server)
    }

    /// The name of the entry, the given name, or one derived from the target.
    fn resolved_name(&self, entry: Option<&str>) -> Result<String, Problem> {
        if let Some(name) = entry.or(self.name.as_deref()) {
            return Ok(name.to_owned());
        }
        let place = self.url.as_deref().or(self.target.as_deref()).or(self.command.as_deref());
        let place = place.ok_or_else(|| {
            Problem::new(ProblemCode::InvalidConfig, "an MCP server has neither a name nor an address")
                .hint("set `name`, and `command`, `url` or `target`")
        })?;
        Ok(name_of(place))
    }

    fn transport(
        &self,
        name: &str,
        folder: &Path,
        filled: &VariableFiller<'_>,
    ) -> Result<McpTransport, Problem> {
        let places = [&self.command, &self.url, &self.target];
        if places.into_iter().flatten().count() != 1 {
            return Err(invalid(name, "must have one of `command`, `url` and `target`").hint(
                "use `command` and `args` for a process, `url` for a network server; `target` takes either \
                 as one text",
            ));
        }
        let target = self.target.as_deref().map(str::trim);
        match self.url.as_deref().or(target.filter(|target| is_address(target))) {
            Some(url) => self.network(name, url, filled),
            None => self.process(name, folder, filled),
        }
    }

    fn network(&self, name: &str, url: &str, filled: &VariableFiller<'_>) -> Result<McpTransport, Problem> {
        if !is_address(url) {
            // It is not shown: whatever stands there by mistake may be a secret.
            return Err(
                invalid(name, "has an invalid `url`").hint("it must start with `http://` or `https://`")
            );
        }
        let fields =
            [("args", !self.args.is_empty()), ("env", !self.env.is_empty()), ("cwd", self.cwd.is_some())];
        refuse(name, "a network server", &fields)?;
        let (headers, auth) = (self.filled_headers(filled)?, self.grant(filled)?);
        Ok(McpTransport::Http { url: url.to_owned(), headers, auth })
    }

    fn process(
        &self,
        name: &str,
        folder: &Path,
        filled: &VariableFiller<'_>,
    ) -> Result<McpTransport, Problem> {
        let fields = [
            ("headers", !self.headers.is_empty()),
            ("access_token", self.access_token.is_some()),
            ("auth", self.auth.is_some()),
        ];
        refuse(name, "a process", &fields)?;
        let mut words = match (&self.command, &self.target) {
            (Some(command), _) => vec![command.clone()],
            (None, Some(target)) => split(target).ok_or_else(|| {
                invalid(name, "has a `target` with a quote that is not closed").hint("close it")
            })?,
            (None, None) => Vec::new(),
        };
        if words.first().is_some_and(|first| first.starts_with('@')) {
            words.splice(0..0, ["npx".to_owned(), "-y".to_owned()]);
        }
        words.extend(self.args.iter().cloned());
        let mut words = words.into_iter();
        let command = words.next().filter(|word| !word.is_empty());
        let command = command.ok_or_else(|| invalid(name, "has an empty command"))?;
        let mut env = BTreeMap::new();
        for (key, value) in &self.env {
            let value = filled.fill(value, &format!("the variable `{key}`"))?;
            env.insert(key.clone(), Secret::new(value));
        }
        let cwd = self.cwd.as_ref().map(|cwd| folder.join(cwd));
        Ok(McpTransport::Stdio { command, args: words.collect(), env, cwd })
    }

    fn filled_headers(&self, filled: &VariableFiller<'_>) -> Result<BTreeMap<String, Secret>, Problem> {
        let mut headers = BTreeMap::new();
        for (name, value) in &self.headers {
            let value = filled.fill(value, &format!("the header `{name}`"))?;
            headers.insert(name.clone(), Secret::new(value));
        }
        if let Some(token) = &self.access_token {
            let token = filled.fill(token, "`access_token`")?;
            headers.retain(|name, _| !name.eq_ignore_ascii_case("authorization"));
            headers.insert("Authorization".to_owned(), Secret::new(format!("Bearer {token}")));
        }
        Ok(headers)
    }

    fn grant(&self, filled: &VariableFiller<'_>) -> Result<Option<ClientCredentials>, Problem> {
        let Some(auth) = &self.auth else { return Ok(None) };
        Ok(Some(ClientCredentials {
            client_id: filled.fill(&auth.client_id, "`auth.client_id`")?,
            client_secret: Secret::new(filled.fill(&auth.client_secret, "`auth.client_secret`")?),
            scopes: auth.scopes.clone(),
        }))
    }
}

impl McpParallelLimitConfig {
    fn limit(&self) -> McpParallelLimit {
        let number = |most: NonZeroU32| usize::try_from(most.get()).unwrap_or(usize::MAX);
        match self {
            Self::Calls(most) => McpParallelLimit::Calls(number(*most)),
            Self::ByTool(tools) => McpParallelLimit::ByTool(
                tools.iter().map(|(tool, most)| (tool.clone(), number(*most))).collect(),
            ),
        }
    }
}

impl DurationSetting {
    fn duration(&self, server: &str, field: &str) -> Result<Duration, Problem> {
        let text = match self {
            Self::Seconds(seconds) => seconds.to_string(),
            Self::Text(text) => text.clone(),
        };
        time_span::parse_single_unit_duration(&text).filter(|time| !time.is_zero()).ok_or_else(|| {
            let message = format!("`{field}` of the MCP server `{server}` is not a duration: `{text}`");
            Problem::new(ProblemCode::InvalidConfig, message)
                .hint("use seconds, or a text such as `500ms`, `30s` or `2m`")
        })
    }
}

fn invalid(name: &str, what: &str) -> Problem {
    Problem::new(ProblemCode::InvalidConfig, format!("the MCP server `{name}` {what}"))
}

/// Rejects fields that do not apply to this kind of server.
fn refuse(name: &str, kind: &str, fields: &[(&str, bool)]) -> Result<(), Problem> {
    match fields.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((field, _)) => {
            Err(invalid(name, &format!("is {kind} and cannot have `{field}`"))
                .hint(format!("remove `{field}`")))
        }
    }
}

/// Inserts variables into texts.
struct VariableFiller<'a> {
    server: &'a str,
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// The values that variables inserted.
    values: RefCell<Vec<Secret>>,
}

impl VariableFiller<'_> {
    /// `text` with every `${NAME}` replaced. `place` is the position of the text, for messages.
    fn fill(&self, text: &str, place: &str) -> Result<String, Problem> {
        let mut whole = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((plain, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else { break };
            whole.push_str(plain);
            let value = (self.environment)(name).ok_or_else(|| {
                let message =
                    format!("the MCP server `{}` needs `{name}` for {place}, but it is not set", self.server);
                Problem::new(ProblemCode::InvalidConfig, message)
                    .hint(format!("set the environment variable `{name}`"))
            })?;
            whole.push_str(&value);
            self.values.borrow_mut().push(Secret::new(value));
            rest = after;
        }
        whole.push_str(rest);
        Ok(whole)
    }
}

fn is_address(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.starts_with("http://") || text.starts_with("https://")
}

/// A name for a server that has none: its host, or its package or program without folder, scope, version and
/// extension.
fn name_of(place: &str) -> String {
    if is_address(place) {
        let host = place.split('/').nth(2).unwrap_or(place);
        let host = host.rsplit('@').next().unwrap_or(host);
        return host.split([':', '?']).next().unwrap_or(host).to_owned();
    }
    let words = split(place).unwrap_or_default();
    let runners = ["npx", "uvx", "python", "python3", "node"];
    let word = words.iter().find(|word| !word.starts_with('-') && !runners.contains(&word.as_str()));
    let word = word.or(words.first()).map_or(place, String::as_str);
    let last = word.rsplit('/').next().unwrap_or(word);
    let last = last.split('@').next().unwrap_or(last);
    last.split('.').next().unwrap_or(last).to_owned()
}

/// Splits a command line into words as a shell does, with quotes and backslashes; nothing else is special.
/// `None` if a quote is not closed.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, c @ ('"' | '\'')) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
