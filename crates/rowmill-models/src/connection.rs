//! Where calls go and how they are authorized: base URL, key and headers.

use std::fmt;

use rowmill_core::known_secrets::{address_secrets, header_secrets, strip_address_secrets};
use rowmill_core::redact::Redactor;
use rowmill_http::{HeaderMap, HeaderName, HeaderValue, Url};
use rowmill_types::{Problem, ProblemCode, Secret};

use crate::base_url::{BaseUrl, resolve_base_url};
use crate::model_string::ModelString;
use crate::provider::{Provider, ProviderProtocol, ProviderRegistry};
use crate::quirks::ProviderQuirks;
use crate::tool_calls::{HOSTED, hosts_tool};

/// Reads an environment variable; an empty one counts as not set.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A provider's address, key and headers, resolved for one run.
///
/// The base URL comes from the provider's variable in the environment, else
/// from `rowmill.toml`, else from the provider's default.
#[derive(Clone)]
pub struct ProviderConnection {
    /// The provider's name.
    pub provider: String,
    /// The provider's protocol.
    pub protocol: ProviderProtocol,
    pub(crate) base_url: Option<Url>,
    pub(crate) key: Option<Secret>,
    /// The variable that contained the key.
    pub(crate) key_variable: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) quirks: ProviderQuirks,
    /// A notice for the user if a path was added to the base URL.
    pub address_notice: Option<String>,
    secrets: Vec<Secret>,
    redactor: Redactor,
}

impl ProviderConnection {
    /// The scheme, host, port and path of the base URL; empty for built-in models.
    pub(crate) fn redacted_base_url(&self) -> String {
        let Some(url) = &self.base_url else { return String::new() };
        format!("{}{}", url.origin().ascii_serialization(), url.path())
    }

    /// Finds the address and the key of a model's provider.
    ///
    /// # Errors
    ///
    /// The key is required and missing, or the base URL or a header cannot be used.
    pub fn resolve(
        model: &ModelString,
        providers: &ProviderRegistry,
        environment: VariableLookup<'_>,
    ) -> Result<Self, Problem> {
        let provider = providers.find(&model.provider).ok_or_else(|| {
            Problem::new(ProblemCode::InvalidModel, format!("unknown provider `{}`", model.provider))
                .hint("`rowmill models` lists the providers")
        })?;
        let (key_variable, key) = find_key(provider, environment)?.unzip();
        let mut secrets: Vec<Secret> = key.iter().cloned().collect();
        let headers = headers(provider, environment, &mut secrets)?;
        let (base_url, address_notice) =
            resolve_base_url(provider, environment)?.map(BaseUrl::into_parts).unzip();
        secrets.extend(base_url.iter().flat_map(|url| address_secrets(url.as_str())));
        let quirks = provider.quirks();
        let asks = HOSTED.iter().any(|key| hosts_tool(&model.settings, *key));
        let protocol =
            if quirks.hosts_by_responses && asks { ProviderProtocol::Responses } else { provider.protocol() };
        Ok(Self {
            provider: provider.name().to_owned(),
            protocol,
            base_url,
            key,
            key_variable,
            headers,
            quirks,
            address_notice: address_notice.flatten(),
            redactor: Redactor::new(&secrets)?,
            secrets,
        })
    }

    /// Where calls go; `None` for a built-in model.
    #[must_use]
    pub fn base_url(&self) -> Option<&str> {
        self.base_url.as_ref().map(Url::as_str)
    }

    /// Every credential of this connection, for callers that keep texts which may contain one.
    #[must_use]
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// `text` without any credential of this connection.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    /// The base URL followed by `path`.
    pub(crate) fn address(&self, path: &str) -> Result<Url, Problem> {
        let missing = || Problem::new(ProblemCode::Internal, "a built-in model has no base URL");
        let base = self.base_url.as_ref().ok_or_else(missing)?;
        let mut url = base.clone();
        url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
        Ok(url)
    }

    /// A header value that is never shown.
    pub(crate) fn credential(&self, text: &str) -> Result<HeaderValue, Problem> {
        sensitive(text).ok_or_else(|| {
            Problem::new(
                ProblemCode::MissingKey,
                format!("the key of `{}` has characters that are not allowed in a header", self.provider),
            )
            .hint("set the key again, without line breaks")
        })
    }
}

impl fmt::Debug for ProviderConnection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Connection")
            .field("provider", &self.provider)
            .field("protocol", &self.protocol)
            .field("base_url", &self.base_url().map(strip_address_secrets))
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The key with the variable that contained it.
pub(crate) fn find_key(
    provider: &Provider,
    environment: VariableLookup<'_>,
) -> Result<Option<(String, Secret)>, Problem> {
    let variables = provider.key_variables();
    let set = variables.iter().find_map(|name| Some((name.clone(), non_empty_variable(environment, name)?)));
    if let Some((name, text)) = set {
        return Ok(Some((name, Secret::new(text))));
    }
    if !provider.needs_key() {
        return Ok(None);
    }
    let names = variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
    let first = variables.first().map_or("", String::as_str);
    Err(Problem::new(
        ProblemCode::MissingKey,
        format!("`{}` needs a key, but {names} is not set", provider.name()),
    )
    .hint(format!(
        "set it: `export {first}=…`, or choose another variable with `api_key_env` under `[providers.{}]` in \
         `rowmill.toml`",
        provider.name()
    )))
}

fn headers(
    provider: &Provider,
    environment: VariableLookup<'_>,
    secrets: &mut Vec<Secret>,
) -> Result<HeaderMap, Problem> {
    let mut headers = HeaderMap::new();
    for (name, template) in &provider.config.headers {
        let wrong = |what: &str| {
            Problem::new(
                ProblemCode::InvalidConfig,
                format!("header `{name}` of `[providers.{}]` {what}", provider.name()),
            )
            .hint("correct `headers` in `rowmill.toml`")
        };
        let value = expand(template, environment, secrets).map_err(|missing| {
            wrong(&format!("needs the variable `{missing}`, which is not set"))
                .hint(format!("set it: `export {missing}=…`"))
        })?;
        secrets.extend(header_secrets(name, &value));
        let header =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("is not a valid header name"))?;
        headers.insert(
            header,
            sensitive(&value).ok_or_else(|| wrong("has a value that is not allowed in a header"))?,
        );
    }
    Ok(headers)
}

/// Replaces `${NAME}`; the error is the name of a variable that is not set.
fn expand(
    template: &str,
    environment: VariableLookup<'_>,
    secrets: &mut Vec<Secret>,
) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        let found = non_empty_variable(environment, name).ok_or_else(|| name.to_owned())?;
        text.push_str(before);
        text.push_str(&found);
        secrets.push(Secret::new(found));
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

pub(crate) fn non_empty_variable(environment: VariableLookup<'_>, name: &str) -> Option<String> {
    environment(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
