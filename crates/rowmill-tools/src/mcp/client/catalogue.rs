//! The tools, resources and prompts that a server offers, and the names under which models see them.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest, GetPromptRequestParams,
    JsonObject, Prompt, ReadResourceRequest, ReadResourceRequestParams, Resource, ResourceTemplate, Tool,
};
use rmcp::service::ServiceError;
use rowmill_types::{Problem, ProblemCode, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::session::McpSession;
use super::tasks::is_task_only;
use super::tool_names::ToolNames;
use crate::mcp::name_filter::{self, NameFilter};
use crate::mcp::server::{IdempotentTools, McpParallelLimit, McpServerSettings};
use crate::mcp::view::ServerView;

/// The maximum number of resources or prompts that are listed for a model.
const MOST_NAMED: usize = 50;
/// The maximum length of the description of each.
const LONGEST_WORDS: usize = 200;

/// A tool that can be offered to models.
#[derive(Debug, Clone, PartialEq)]
pub struct McpTool {
    /// The tool as models see it.
    pub spec: ToolSpec,
    /// The name under which [`super::McpHost`] knows it.
    pub host_name: String,
    /// The server's name.
    pub server: String,
    /// The server's name for it; empty for tools that represent resources or prompts.
    pub tool: String,
    /// What it represents.
    pub kind: McpPrimitive,
    /// The index of the server's view that a tool for resources or prompts belongs to: 0 is the view of the
    /// server's entry, the others follow. [`super::McpHost::offered_tools`] uses it.
    pub(super) view: usize,
    /// Whether it may run twice.
    pub idempotent: bool,
}

/// What a tool represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpPrimitive {
    /// A tool of the server itself.
    Tool,
    /// The server's resources.
    Resources,
    /// The server's prompts.
    Prompts,
}

/// What a server reported at its start.
#[derive(Debug, Default)]
pub(super) struct ServerCatalogue {
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    prompts: Vec<Prompt>,
    pub(super) instructions: Option<String>,
    /// Tools that are not offered, because they cannot be called directly.
    pub(super) need_tasks: Vec<String>,
}

impl ServerCatalogue {
    /// Requests all lists that are needed, page by page.
    pub(super) async fn fetch(
        session: &McpSession,
        server: &McpServerSettings,
    ) -> Result<Self, ServiceError> {
        let (peer, mut catalogue) = (session.peer(), Self::default());
        let Some(info) = peer.peer_info() else { return Ok(catalogue) };
        catalogue.instructions.clone_from(&info.instructions);
        let (able, views) = (&info.capabilities, server.all_views());
        let wanted =
            |of: fn(&ServerView) -> &NameFilter| views.iter().any(|view| *of(view) != NameFilter::Nothing);
        if able.tools.is_some() && server.tools != NameFilter::Nothing {
            catalogue.tools = peer.list_all_tools().await?;
        }
        if able.resources.is_some() && wanted(|view| &view.resources) {
            catalogue.resources = peer.list_all_resources().await?;
            // Many servers with resources have no templates, and some return an error for them.
            catalogue.templates = peer.list_all_resource_templates().await.unwrap_or_default();
        }
        if able.prompts.is_some() && wanted(|view| &view.prompts) {
            catalogue.prompts = peer.list_all_prompts().await?;
        }
        Ok(catalogue)
    }

    /// The tools to offer.
    ///
    /// # Errors
    ///
    /// A filter names something that the server does not have.
    pub(super) fn offered_tools(
        &mut self,
        server: &McpServerSettings,
        names: &mut ToolNames,
    ) -> Result<Vec<McpTool>, Problem> {
        let views = server.all_views();
        self.check_filters(server, &server.default_view())?;
        self.check_limits(server)?;
        self.tools.retain(|tool| server.tools.allows(&tool.name));
        let need_tasks =
            self.tools.iter().filter(|tool| is_task_only(tool)).map(|tool| tool.name.to_string());
        self.need_tasks = need_tasks.collect();
        let plain = self.tools.iter().filter(|tool| !is_task_only(tool));
        let mut offered: Vec<_> = plain.map(|tool| offered_tool(server, tool, names)).collect();
        let (mut reading, mut fetching) = (None, None);
        for (index, view) in views.iter().enumerate() {
            self.check_filters(server, view)?;
            let mut made = |name: &str, known: &mut Option<String>, kind, (words, schema)| {
                let name = known.get_or_insert_with(|| names.unique_name(&server.name, name));
                offered.push(made_tool(server, name, (kind, index), words, schema));
            };
            if let Some(description) = self.describe_resources(server, &view.resources) {
                made("read_resource", &mut reading, McpPrimitive::Resources, description);
            }
            if let Some(description) = self.describe_prompts(server, &view.prompts) {
                made("get_prompt", &mut fetching, McpPrimitive::Prompts, description);
            }
        }
        Ok(offered)
    }

    fn check_limits(&self, server: &McpServerSettings) -> Result<(), Problem> {
        let McpParallelLimit::ByTool(limits) = &server.max_parallel else { return Ok(()) };
        let named = NameFilter::Only(limits.iter().map(|(name, _)| name.clone()).collect());
        let known: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        let Some(name) = named.unknown_name(&known) else { return Ok(()) };
        let message =
            format!("`max_parallel` of the MCP server `{}` names an unknown tool: `{name}`", server.name);
        let hint = format!("the server has: `{}`", known.join("`, `"));
        Err(Problem::new(ProblemCode::InvalidConfig, message).hint(hint))
    }

    fn check_filters(&self, server: &McpServerSettings, view: &ServerView) -> Result<(), Problem> {
        let tools: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
        let mut resources: Vec<&str> =
            self.resources.iter().flat_map(|each| [each.name.as_str(), each.uri.as_str()]).collect();
        resources
            .extend(self.templates.iter().flat_map(|each| [each.name.as_str(), each.uri_template.as_str()]));
        let prompts: Vec<&str> = self.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        let checks = [
            ("tool", &view.tools, tools),
            ("resource", &view.resources, resources),
            ("prompt", &view.prompts, prompts),
        ];
        for (what, filter, known) in checks {
            // A URI may come from a template.
            let made =
                |name: &str| what == "resource" && self.templates.iter().any(|each| stands_for(each, name));
            let Some(name) = filter.unknown_name(&known).filter(|name| !made(name)) else { continue };
            let known =
                if known.is_empty() { "none".to_owned() } else { format!("`{}`", known.join("`, `")) };
            let message = format!("the MCP server `{}` has no {what} `{name}`", server.name);
            return Err(Problem::new(ProblemCode::InvalidConfig, message)
                .hint(format!("correct the list of {what}s; the server has: {known}")));
        }
        Ok(())
    }

    fn resources<'a>(&'a self, filter: &'a NameFilter) -> impl Iterator<Item = &'a Resource> {
        self.resources.iter().filter(|each| filter.allows(&each.name) || filter.allows(&each.uri))
    }

    fn templates<'a>(&'a self, filter: &'a NameFilter) -> impl Iterator<Item = &'a ResourceTemplate> {
        self.templates.iter().filter(|each| filter.allows(&each.name) || filter.allows(&each.uri_template))
    }

    /// The description of the tool that reads resources, if there are any.
    fn describe_resources(&self, server: &McpServerSettings, filter: &NameFilter) -> Option<(String, Value)> {
        let (known, made) = (self.resources(filter).count(), self.templates(filter).count());
        if known + made == 0 {
            return None;
        }
        let mut lines = vec![format!("Reads a resource of {}. Known resources:", server.name)];
        for each in self.resources(filter).take(MOST_NAMED) {
            lines.push(line(&each.uri, Some(&each.name), each.description.as_deref()));
        }
        for each in self.templates(filter).take(MOST_NAMED) {
            lines.push(line(&each.uri_template, Some(&each.name), each.description.as_deref()));
        }
        let left = known.saturating_sub(MOST_NAMED) + made.saturating_sub(MOST_NAMED);
        if left > 0 {
            lines.push(format!("and {left} more"));
        }
        let schema = json!({
            "type": "object",
            "properties": {"uri": {"type": "string", "description": "The address of the resource."}},
            "required": ["uri"],
            "additionalProperties": false,
        });
        Some((lines.join("\n"), schema))
    }

    /// The description of the tool that fetches prompts, if there are any.
    fn describe_prompts(&self, server: &McpServerSettings, filter: &NameFilter) -> Option<(String, Value)> {
        let prompts: Vec<&Prompt> = self.prompts.iter().filter(|each| filter.allows(&each.name)).collect();
        if prompts.is_empty() {
            return None;
        }
        let mut lines = vec![format!("Fetches a prompt of {}. Known prompts:", server.name)];
        for prompt in prompts.iter().take(MOST_NAMED) {
            let arguments = prompt.arguments.iter().flatten().map(|argument| {
                let needed = if argument.required == Some(true) { "" } else { "?" };
                format!("{}{needed}", argument.name)
            });
            let arguments: Vec<_> = arguments.collect();
            let call = format!("{}({})", prompt.name, arguments.join(", "));
            lines.push(line(&call, None, prompt.description.as_deref()));
        }
        let known: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": known},
                "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["name"],
            "additionalProperties": false,
        });
        Some((lines.join("\n"), schema))
    }

    /// The request for a call, or the message that the model gets instead.
    pub(super) fn make_request(
        &self,
        offered: &McpTool,
        view: &ServerView,
        arguments: &str,
    ) -> Result<ClientRequest, ToolOutput> {
        let text = if arguments.trim().is_empty() { "{}" } else { arguments };
        let mut arguments: JsonObject = serde_json::from_str(text)
            .map_err(|error| ToolOutput::error(format!("the arguments are no JSON object: {error}")))?;
        let mut text = |name: &str| match arguments.remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(ToolOutput::error(format!("`{name}` must be given as a text"))),
        };
        match offered.kind {
            McpPrimitive::Tool => {
                let params = CallToolRequestParams::new(offered.tool.clone()).with_arguments(arguments);
                Ok(ClientRequest::CallToolRequest(CallToolRequest::new(params)))
            }
            McpPrimitive::Resources => {
                let uri = text("uri")?;
                if !self.readable(&uri, &view.resources) {
                    return Err(ToolOutput::error(format!("there is no resource `{uri}` that may be read")));
                }
                let params = ReadResourceRequestParams::new(uri);
                Ok(ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params)))
            }
            McpPrimitive::Prompts => {
                let name = text("name")?;
                if !view.prompts.allows(&name) || !self.prompts.iter().any(|prompt| prompt.name == name) {
                    return Err(ToolOutput::error(format!("there is no prompt `{name}`")));
                }
                let mut params = GetPromptRequestParams::new(name);
                if let Some(Value::Object(given)) = arguments.remove("arguments") {
                    params = params.with_arguments(given);
                }
                Ok(ClientRequest::GetPromptRequest(GetPromptRequest::new(params)))
            }
        }
    }

    fn readable(&self, uri: &str, filter: &NameFilter) -> bool {
        filter.allows(uri)
            || self.resources(filter).any(|resource| resource.uri == uri)
            || self.templates(filter).any(|template| stands_for(template, uri))
    }
}

/// Whether a URI can come from a template.
fn stands_for(template: &ResourceTemplate, uri: &str) -> bool {
    let mut pattern = String::new();
    let mut rest = template.uri_template.as_str();
    while let Some((plain, after)) = rest.split_once('{') {
        pattern.push_str(plain);
        pattern.push('*');
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    pattern.push_str(rest);
    name_filter::matches(&pattern, uri)
}

fn offered_tool(server: &McpServerSettings, tool: &Tool, names: &mut ToolNames) -> McpTool {
    let hints = tool.annotations.as_ref();
    let idempotent = match &server.idempotent {
        IdempotentTools::All => true,
        IdempotentTools::None => false,
        IdempotentTools::Only(patterns) => {
            patterns.iter().any(|pattern| name_filter::matches(pattern, &tool.name))
        }
        IdempotentTools::ByServer => hints
            .is_some_and(|hints| hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)),
    };
    let name = names.unique_name(&server.name, &tool.name);
    let title = tool.title.clone().or_else(|| hints?.title.clone());
    let description = tool.description.as_ref().map(ToString::to_string).or(title);
    McpTool {
        spec: ToolSpec {
            name: name.clone(),
            description,
            schema: Value::Object((*tool.input_schema).clone()),
        },
        host_name: name,
        server: server.name.clone(),
        tool: tool.name.to_string(),
        kind: McpPrimitive::Tool,
        view: 0,
        idempotent,
    }
}

fn made_tool(
    server: &McpServerSettings,
    name: &str,
    (kind, view): (McpPrimitive, usize),
    description: String,
    schema: Value,
) -> McpTool {
    McpTool {
        spec: ToolSpec { name: name.to_owned(), description: Some(description), schema },
        // Models know all views' tools by one name.
        host_name: if view == 0 { name.to_owned() } else { format!("{name}/{view}") },
        server: server.name.clone(),
        tool: String::new(),
        kind,
        view,
        idempotent: true,
    }
}

fn line(what: &str, name: Option<&str>, words: Option<&str>) -> String {
    let words: Vec<_> = [name, words].into_iter().flatten().collect();
    let words: String = words.join(": ").chars().take(LONGEST_WORDS).collect();
    if words.is_empty() { format!("- {what}") } else { format!("- {what} ({})", words.replace('\n', " ")) }
}
