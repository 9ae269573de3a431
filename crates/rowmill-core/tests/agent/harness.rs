//! A test harness: an agent graph and a row state whose steps are addressed by names.

use std::time::Duration;

use rowmill_core::agent::{
    AgentAnswer, AgentDefinition, AgentGraph, AgentGraphTool, AgentKind, AgentSettings, AnswerFormat,
    ChildAgent, ModelAnswer, RowState, RowStep, ToolCallAction, ToolResult,
};
use rowmill_core::validate::ResultSchema;
use rowmill_types::{Attachment, Completion, Message, RowError, ToolCall, ToolOutput, ToolSpec};
use serde_json::json;

/// A row being worked on.
pub(crate) struct GraphHarness {
    pub(crate) graph: AgentGraph,
    pub(crate) row_state: RowState,
    /// The open steps.
    pub(crate) open: Vec<RowStep>,
}

impl GraphHarness {
    pub(crate) fn ask(graph: AgentGraph, request: &str) -> Self {
        Self::start(graph, vec![Message::user(request)])
    }

    pub(crate) fn start(graph: AgentGraph, prompt: Vec<Message>) -> Self {
        let row_state = RowState::start(&graph, prompt);
        let mut harness = Self { graph, row_state, open: Vec::new() };
        harness.gather();
        harness
    }

    fn gather(&mut self) {
        while let Some(step) = self.row_state.next_step() {
            self.open.push(step);
        }
    }

    /// The open steps: names of agents, of tools as `tool:index`, and watches.
    pub(crate) fn waits_for(&self) -> Vec<String> {
        let name = |step: &RowStep| match step {
            RowStep::CallModel { model_role, .. } => self.current_agent(*model_role).to_owned(),
            RowStep::CallTool { tool, index, .. } => {
                format!("{}:{index}", self.graph.tools()[*tool].spec.name)
            }
            RowStep::StartTimer { node, limit } => format!("watch {node} for {} s", limit.as_secs()),
        };
        self.open.iter().map(name).collect()
    }

    fn current_agent(&self, model_role: usize) -> &str {
        &self.graph.agents()[self.graph.model_roles()[model_role].agent_index].name
    }

    fn take(&mut self, agent_name: &str) -> (usize, Vec<Message>) {
        let is_it = |step: &RowStep| matches!(step, RowStep::CallModel { model_role, .. } if self.current_agent(*model_role) == agent_name);
        let Some(at) = self.open.iter().position(is_it) else {
            panic!("`{agent_name}` is not asked, only {:?}", self.waits_for())
        };
        match self.open.remove(at) {
            RowStep::CallModel { node, messages, .. } => (node, messages),
            other => panic!("{other:?}"),
        }
    }

    /// The messages of the first open call of an agent.
    pub(crate) fn messages(&self, agent_name: &str) -> &[Message] {
        let found = self.open.iter().find_map(|step| match step {
            RowStep::CallModel { model_role, messages, .. }
                if self.current_agent(*model_role) == agent_name =>
            {
                Some(messages)
            }
            _ => None,
        });
        found.unwrap_or_else(|| panic!("`{agent_name}` is not asked, only {:?}", self.waits_for()))
    }

    /// The answer format of the first open call of an agent.
    pub(crate) fn form(&self, agent_name: &str) -> AnswerFormat {
        let found = self.open.iter().find_map(|step| match step {
            RowStep::CallModel { model_role, .. } if self.current_agent(*model_role) == agent_name => {
                Some(*model_role)
            }
            _ => None,
        });
        self.graph.model_roles()[found.unwrap()].answer_format
    }

    /// The only message of an agent's first open call.
    pub(crate) fn asked(&self, agent_name: &str) -> &str {
        match self.messages(agent_name) {
            [only] => &only.text,
            several => panic!("{} messages", several.len()),
        }
    }

    pub(crate) fn answer(&mut self, agent_name: &str, text: &str) {
        self.answer_with(agent_name, Completion::from_text(text));
    }

    pub(crate) fn answer_with(&mut self, agent_name: &str, completion: Completion) {
        let (node, messages) = self.take(agent_name);
        let answer = ModelAnswer { messages, completion, note: None };
        self.row_state.handle_answer(&self.graph, node, answer);
        self.gather();
    }

    pub(crate) fn fail(&mut self, agent_name: &str, error: RowError) {
        let (node, messages) = self.take(agent_name);
        self.row_state.handle_model_failure(&self.graph, node, messages, error);
        self.gather();
    }

    /// Ends an open tool call, named as in [`GraphHarness::waits_for`]; returns its arguments.
    pub(crate) fn give(&mut self, tool: &str, output: ToolOutput) -> String {
        let at = self.waits_for().iter().position(|name| name == tool);
        let Some(RowStep::CallTool { node, index, call, .. }) = at.map(|at| self.open.remove(at)) else {
            panic!("`{tool}` is not called, only {:?}", self.waits_for())
        };
        let result = ToolResult { index, output, note: None };
        self.row_state.handle_tool_output(&self.graph, node, result);
        self.gather();
        call.arguments
    }

    /// Lets the time limit of the first watched node pass.
    pub(crate) fn expire(&mut self) {
        let at = self.open.iter().position(|step| matches!(step, RowStep::StartTimer { .. }));
        let Some(RowStep::StartTimer { node, limit }) = at.map(|at| self.open.remove(at)) else {
            panic!("nobody is watched")
        };
        self.row_state.handle_node_timeout(&self.graph, node, limit);
        self.gather();
    }

    pub(crate) fn outcome(&mut self) -> AgentAnswer {
        let waits = self.waits_for();
        self.row_state.take_outcome(&self.graph).unwrap_or_else(|| panic!("waits for {waits:?}"))
    }

    /// The text result of a row that succeeded without a schema.
    pub(crate) fn text(&mut self) -> String {
        serde_json::from_str(&self.outcome().unwrap()).unwrap()
    }
}

pub(crate) fn agent_of_kind(name: &str, kind: AgentKind) -> AgentDefinition {
    AgentDefinition { name: name.into(), description: format!("Does {name}."), kind }
}

pub(crate) fn agent(name: &str) -> AgentDefinition {
    agent_with(name, AgentSettings::default())
}

pub(crate) fn agent_with(name: &str, agent: AgentSettings) -> AgentDefinition {
    let max_iterations = if agent.max_iterations == 0 { 99 } else { agent.max_iterations };
    agent_of_kind(name, AgentKind::Agent(AgentSettings { max_iterations, ..agent }))
}

/// An agent graph whose worker is the last agent.
pub(crate) fn graph(agents: Vec<AgentDefinition>) -> AgentGraph {
    let worker = agents.len() - 1;
    AgentGraph::new(agents, Vec::new(), worker, None).unwrap()
}

/// The same, with results that have a field `n`.
pub(crate) fn graph_with_schema(agents: Vec<AgentDefinition>) -> AgentGraph {
    let worker = agents.len() - 1;
    AgentGraph::new(agents, Vec::new(), worker, Some(number_schema())).unwrap()
}

pub(crate) fn number_schema() -> ResultSchema {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    ResultSchema::parse(&schema.to_string(), "test").unwrap()
}

/// A tool with a text argument `q`.
pub(crate) fn tool(name: &str, route: ToolCallAction) -> AgentGraphTool {
    let schema = json!({
        "type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]
    });
    AgentGraphTool {
        arguments: Some(ResultSchema::parse(&schema.to_string(), "test").unwrap()),
        spec: ToolSpec { name: name.into(), description: None, schema },
        host_name: name.into(),
        route,
        idempotent: true,
        timeout: Duration::from_secs(1),
    }
}

pub(crate) fn child(agent_index: usize, name: &str) -> ChildAgent {
    let schema = json!({"type": "object"});
    ChildAgent {
        agent_index,
        spec: ToolSpec { name: name.into(), description: None, schema },
        arguments: None,
    }
}

/// An answer with tool calls: names and arguments. Their ids are `call-0`, `call-1` and so on.
pub(crate) fn calls(calls: &[(&str, &str)]) -> Completion {
    let call = |(index, (name, arguments)): (usize, &(&str, &str))| ToolCall {
        id: format!("call-{index}"),
        name: (*name).into(),
        arguments: (*arguments).into(),
    };
    Completion { calls: calls.iter().enumerate().map(call).collect(), ..Completion::from_text("") }
}

pub(crate) fn file(name: &str) -> Attachment {
    Attachment {
        name: name.into(),
        media_type: "image/png".into(),
        bytes: name.as_bytes().to_vec().into(),
        digest: String::new(),
    }
}

/// A request with a file.
pub(crate) fn request_with_file(text: &str) -> Vec<Message> {
    vec![Message { attachments: vec![file("a.png")], ..Message::user(text) }]
}

/// The number of files of each message.
pub(crate) fn files(messages: &[Message]) -> Vec<usize> {
    messages.iter().map(|message| message.attachments.len()).collect()
}

pub(crate) fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.text.as_str()).collect()
}
