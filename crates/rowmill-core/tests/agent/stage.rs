//! A test harness: an agent graph and a row state whose steps are addressed by names.

use std::time::Duration;

use rowmill_core::agent::{Agent, Answer, Cast, Child, Course, Form, Kind, Member, Route, Step, Tool};
use rowmill_core::validate::ResultSchema;
use rowmill_types::{Attachment, Completion, Message, RowError, ToolCall, ToolOutput, ToolSpec};
use serde_json::json;

/// A row being worked on.
pub(crate) struct Stage {
    pub(crate) cast: Cast,
    pub(crate) course: Course,
    /// The open steps.
    pub(crate) open: Vec<Step>,
}

impl Stage {
    pub(crate) fn ask(cast: Cast, request: &str) -> Self {
        Self::start(cast, vec![Message::user(request)])
    }

    pub(crate) fn start(cast: Cast, prompt: Vec<Message>) -> Self {
        let course = Course::start(&cast, prompt);
        let mut stage = Self { cast, course, open: Vec::new() };
        stage.gather();
        stage
    }

    fn gather(&mut self) {
        while let Some(step) = self.course.next_step() {
            self.open.push(step);
        }
    }

    /// The open steps: names of agents, of tools as `tool:index`, and watches.
    pub(crate) fn waits_for(&self) -> Vec<String> {
        let name = |step: &Step| match step {
            Step::CallModel { voice, .. } => self.speaker(*voice).to_owned(),
            Step::CallTool { tool, index, .. } => format!("{}:{index}", self.cast.tools()[*tool].spec.name),
            Step::Watch { node, limit } => format!("watch {node} for {} s", limit.as_secs()),
        };
        self.open.iter().map(name).collect()
    }

    fn speaker(&self, voice: usize) -> &str {
        &self.cast.members()[self.cast.voices()[voice].member].name
    }

    fn take(&mut self, member: &str) -> (usize, Vec<Message>) {
        let is_it =
            |step: &Step| matches!(step, Step::CallModel { voice, .. } if self.speaker(*voice) == member);
        let Some(at) = self.open.iter().position(is_it) else {
            panic!("`{member}` is not asked, only {:?}", self.waits_for())
        };
        match self.open.remove(at) {
            Step::CallModel { node, messages, .. } => (node, messages),
            other => panic!("{other:?}"),
        }
    }

    /// The messages of the first open call of an agent.
    pub(crate) fn messages(&self, member: &str) -> &[Message] {
        let found = self.open.iter().find_map(|step| match step {
            Step::CallModel { voice, messages, .. } if self.speaker(*voice) == member => Some(messages),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("`{member}` is not asked, only {:?}", self.waits_for()))
    }

    /// The answer format of the first open call of an agent.
    pub(crate) fn form(&self, member: &str) -> Form {
        let found = self.open.iter().find_map(|step| match step {
            Step::CallModel { voice, .. } if self.speaker(*voice) == member => Some(*voice),
            _ => None,
        });
        self.cast.voices()[found.unwrap()].form
    }

    /// The only message of an agent's first open call.
    pub(crate) fn asked(&self, member: &str) -> &str {
        match self.messages(member) {
            [only] => &only.text,
            several => panic!("{} messages", several.len()),
        }
    }

    pub(crate) fn answer(&mut self, member: &str, text: &str) {
        self.answer_with(member, Completion::of_text(text));
    }

    pub(crate) fn answer_with(&mut self, member: &str, completion: Completion) {
        let (node, messages) = self.take(member);
        self.course.answered(&self.cast, node, messages, completion, None);
        self.gather();
    }

    pub(crate) fn fail(&mut self, member: &str, error: RowError) {
        let (node, messages) = self.take(member);
        self.course.failed(&self.cast, node, messages, error);
        self.gather();
    }

    /// Ends an open tool call, named as in [`Stage::waits_for`]; returns its arguments.
    pub(crate) fn give(&mut self, tool: &str, output: ToolOutput) -> String {
        let at = self.waits_for().iter().position(|name| name == tool);
        let Some(Step::CallTool { node, index, call, .. }) = at.map(|at| self.open.remove(at)) else {
            panic!("`{tool}` is not called, only {:?}", self.waits_for())
        };
        self.course.tool_ended(&self.cast, node, index, output, None);
        self.gather();
        call.arguments
    }

    /// Lets the time limit of the first watched node pass.
    pub(crate) fn expire(&mut self) {
        let at = self.open.iter().position(|step| matches!(step, Step::Watch { .. }));
        let Some(Step::Watch { node, limit }) = at.map(|at| self.open.remove(at)) else {
            panic!("nobody is watched")
        };
        self.course.expired(&self.cast, node, limit);
        self.gather();
    }

    pub(crate) fn outcome(&mut self) -> Answer {
        let waits = self.waits_for();
        self.course.take_outcome(&self.cast).unwrap_or_else(|| panic!("waits for {waits:?}"))
    }

    /// The text result of a row that succeeded without a schema.
    pub(crate) fn text(&mut self) -> String {
        serde_json::from_str(&self.outcome().unwrap()).unwrap()
    }
}

pub(crate) fn member(name: &str, kind: Kind) -> Member {
    Member { name: name.into(), description: format!("Does {name}."), kind }
}

pub(crate) fn agent(name: &str) -> Member {
    agent_with(name, Agent::default())
}

pub(crate) fn agent_with(name: &str, agent: Agent) -> Member {
    let max_iterations = if agent.max_iterations == 0 { 99 } else { agent.max_iterations };
    member(name, Kind::Agent(Agent { max_iterations, ..agent }))
}

/// An agent graph whose worker is the last agent.
pub(crate) fn cast(members: Vec<Member>) -> Cast {
    let worker = members.len() - 1;
    Cast::new(members, Vec::new(), worker, None).unwrap()
}

/// The same, with results that have a field `n`.
pub(crate) fn cast_with_schema(members: Vec<Member>) -> Cast {
    let worker = members.len() - 1;
    Cast::new(members, Vec::new(), worker, Some(number_schema())).unwrap()
}

pub(crate) fn number_schema() -> ResultSchema {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    ResultSchema::parse(&schema.to_string(), "test").unwrap()
}

/// A tool with a text argument `q`.
pub(crate) fn tool(name: &str, route: Route) -> Tool {
    let schema = json!({
        "type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]
    });
    Tool {
        arguments: Some(ResultSchema::parse(&schema.to_string(), "test").unwrap()),
        spec: ToolSpec { name: name.into(), description: None, schema },
        host_name: name.into(),
        route,
        idempotent: true,
        timeout: Duration::from_secs(1),
    }
}

pub(crate) fn child(member: usize, name: &str) -> Child {
    let schema = json!({"type": "object"});
    Child { member, spec: ToolSpec { name: name.into(), description: None, schema }, arguments: None }
}

/// An answer with tool calls: names and arguments. Their ids are `call-0`, `call-1` and so on.
pub(crate) fn calls(calls: &[(&str, &str)]) -> Completion {
    let call = |(index, (name, arguments)): (usize, &(&str, &str))| ToolCall {
        id: format!("call-{index}"),
        name: (*name).into(),
        arguments: (*arguments).into(),
    };
    Completion { calls: calls.iter().enumerate().map(call).collect(), ..Completion::of_text("") }
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
