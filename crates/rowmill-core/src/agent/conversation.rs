//! One agent's conversation with its model: turns, tool calls, corrections.

use rowmill_types::{
    Completion, FinishReason, Message, MessageRole, RequestPurpose, RowError, RowErrorKind, ToolCall,
    ToolOutput,
};

use super::answer_format::AnswerFormat;
use super::graph::{AgentGraph, AgentGraphTool, AgentKind, AgentSettings, ChildAgent, ToolCallAction};
use super::step::{AgentAnswer, ModelAnswer, NodeAction, NodeTask, StartAgent, model_calls_text};
use super::transcript::{self, ToolCallDetails, TurnDetails};
use crate::answer_consequence::{AnswerConsequence, judge_answer};
use crate::validate::{ResultSchema, SchemaVerdict};

pub(super) struct AgentConversation {
    agent_index: usize,
    model_role: usize,
    messages: Vec<Message>,
    /// The number of messages before the model's first one.
    given: usize,
    turns: u32,
    repairs: u32,
    /// What the answer to the current turn is for.
    purpose: RequestPurpose,
    /// The calls of the last turn that are open, and those that wait for a slot.
    calls: Vec<OpenToolCall>,
    turn_details: Vec<TurnDetails>,
    tool_call_details: Vec<ToolCallDetails>,
}

/// A call of the last turn.
struct OpenToolCall {
    call: ToolCall,
    state: CallState,
    passes: bool,
}

enum CallState {
    Waiting(PlannedCall),
    Running { child: bool },
    Ended(ToolOutput),
}

/// The next action for a call.
enum PlannedCall {
    Tool(usize),
    Child { agent_index: usize, request: String },
}

impl AgentConversation {
    pub(super) fn new(
        graph: &AgentGraph,
        agent_index: usize,
        form: AnswerFormat,
        request: Vec<Message>,
    ) -> Self {
        let examples =
            agent_of(graph, agent_index).map(|agent| agent.examples.as_slice()).unwrap_or_default();
        let messages = if examples.is_empty() { request } else { [examples, &request].concat() };
        Self {
            agent_index,
            model_role: graph.model_role(agent_index, form),
            given: messages.len(),
            messages,
            turns: 0,
            repairs: 0,
            purpose: RequestPurpose::Turn,
            calls: Vec::new(),
            turn_details: Vec::new(),
            tool_call_details: Vec::new(),
        }
    }

    /// The model role and all messages so far, which are returned with the answer.
    pub(super) fn next_request(&mut self) -> (usize, Vec<Message>) {
        self.turns += 1;
        (self.model_role, std::mem::take(&mut self.messages))
    }

    pub(super) fn turns(&self) -> u32 {
        self.turns
    }

    /// What the answer to the current turn is for.
    pub(super) fn purpose(&self) -> RequestPurpose {
        self.purpose
    }

    pub(super) fn model_role(&self) -> usize {
        self.model_role
    }

    pub(super) fn restore_messages(&mut self, messages: Vec<Message>) {
        self.messages = messages;
    }

    /// The last text of the model, if there is one.
    pub(super) fn last_model_text(&self) -> Option<String> {
        let since = self.messages.get(self.given..).unwrap_or_default();
        let last_answer = since.iter().rev().find(|message| message.role == MessageRole::Assistant);
        last_answer.map(|message| message.text.clone()).filter(|text| !text.is_empty())
    }

    pub(super) fn add_tool_call_details(&mut self, note: Option<ToolCallDetails>) {
        self.tool_call_details.extend(note);
    }

    /// Notes a call that was never answered.
    pub(super) fn add_unanswered_call(&mut self, call: &str, tool: &str) {
        let at = self.turn_details.last().map(|turn| turn.end).unwrap_or_default();
        let (call, tool) = (call.to_owned(), tool.to_owned());
        self.tool_call_details.push(ToolCallDetails { call, tool, start: at, end: at, is_error: true });
    }

    /// The id of a call of the last turn.
    pub(super) fn call_id(&self, index: usize) -> Option<&str> {
        self.calls.get(index).map(|open| open.call.id.as_str())
    }

    /// How often an answer that violated the schema was requested again.
    pub(super) fn repairs(&self) -> u32 {
        self.repairs
    }

    pub(super) fn into_transcript(
        self,
        caller: Option<transcript::CallingConversation>,
    ) -> transcript::ConversationTranscript {
        let Self { agent_index, model_role, messages, turn_details, tool_call_details, .. } = self;
        transcript::ConversationTranscript {
            agent_index,
            model_role,
            caller,
            messages,
            turns: turn_details,
            tools: tool_call_details,
        }
    }

    pub(super) fn handle_answer(&mut self, graph: &AgentGraph, answer: ModelAnswer) -> NodeAction {
        let ModelAnswer { messages, completion, note } = answer;
        self.messages = messages;
        self.purpose = RequestPurpose::Turn;
        self.turn_details.extend(note);
        match completion.finish {
            FinishReason::Paused => {
                self.say(completion);
                self.ask_again(graph)
            }
            FinishReason::Complete if !completion.calls.is_empty() => self.called(graph, completion),
            _ => self.spoke(graph, completion),
        }
    }

    /// The model gave an answer, not tool calls.
    fn spoke(&mut self, graph: &AgentGraph, completion: Completion) -> NodeAction {
        let answer = match judge_answer(&completion, self.schema(graph), self.repairs < graph.repairs) {
            AnswerConsequence::Text if graph.traced => Ok(completion.text.clone()),
            AnswerConsequence::Text => return NodeAction::Done(Ok(completion.text)),
            AnswerConsequence::Json(result) => Ok(result),
            AnswerConsequence::Failed(error) => Err(error),
            AnswerConsequence::Repair(feedback) => {
                self.repairs += 1;
                self.purpose = RequestPurpose::Repair;
                self.say(completion);
                self.messages.push(Message::user(feedback));
                return self.ask_again(graph);
            }
        };
        if graph.traced {
            self.messages.push(Message::assistant(completion.text));
        }
        NodeAction::Done(answer)
    }

    fn say(&mut self, completion: Completion) {
        let Completion { text, calls, native: echo, .. } = completion;
        self.messages.push(Message { calls, native: echo, ..Message::assistant(text) });
    }

    fn schema<'c>(&self, graph: &'c AgentGraph) -> Option<&'c ResultSchema> {
        graph.model_roles().get(self.model_role).and_then(|model_role| model_role.schema.as_ref())
    }

    fn ask_again(&self, graph: &AgentGraph) -> NodeAction {
        match self.turns_used_up(graph) {
            Some(error) => NodeAction::Done(Err(error)),
            None => NodeAction::Ask,
        }
    }

    fn turns_used_up(&self, graph: &AgentGraph) -> Option<RowError> {
        let most = agent_of(graph, self.agent_index).map_or(u32::MAX, |agent| agent.max_iterations);
        (self.turns >= most).then(|| {
            let who = graph.agent_name(self.agent_index);
            let message =
                format!("`{who}` has no result after {} (`max_iterations`)", model_calls_text(most));
            RowError { raw_text: self.last_model_text(), ..RowError::new(RowErrorKind::TurnLimit, message) }
        })
    }

    /// The model requested tool calls.
    fn called(&mut self, graph: &AgentGraph, completion: Completion) -> NodeAction {
        let calls = completion.calls.clone();
        self.say(completion);
        self.calls = calls.into_iter().map(|call| plan(graph, self.agent_index, call)).collect();
        let passes = self.calls.iter().any(|open| open.passes && !open.has_ended());
        // A tool must not take effect when its result cannot be reported to a model any more.
        if let Some(error) = self.turns_used_up(graph).filter(|_| !passes) {
            return NodeAction::Done(Err(error));
        }
        self.start_calls(graph)
    }

    /// Starts as many calls as may run at once, or continues when all have ended.
    fn start_calls(&mut self, graph: &AgentGraph) -> NodeAction {
        let agent = agent_of(graph, self.agent_index);
        let one_by_one = agent.is_some_and(|agent| agent.sequential_calls);
        // With a limit of zero, no child would ever start.
        let most_children = agent.and_then(|agent| agent.max_parallel).unwrap_or(usize::MAX).max(1);
        let limit = agent.and_then(|agent| agent.child_timeout);
        let is_running = |child: bool| move |open: &&OpenToolCall| matches!(&open.state, CallState::Running { child: is } if *is == child);
        let mut children = self.calls.iter().filter(is_running(true)).count();
        let mut running = children + self.calls.iter().filter(is_running(false)).count();
        let mut acts = Vec::new();
        for (index, open) in self.calls.iter_mut().enumerate() {
            let CallState::Waiting(planned) = &open.state else { continue };
            let is_child = matches!(planned, PlannedCall::Child { .. });
            if (one_by_one && running > 0) || (is_child && children >= most_children) {
                continue;
            }
            running += 1;
            children += usize::from(is_child);
            let planned = std::mem::replace(&mut open.state, CallState::Running { child: is_child });
            match planned {
                CallState::Waiting(PlannedCall::Tool(tool)) => {
                    acts.push(NodeTask::Tool { index, tool, call: open.call.clone() });
                }
                CallState::Waiting(PlannedCall::Child { agent_index, request }) => {
                    let messages = vec![Message::user(request)];
                    acts.push(NodeTask::Start(StartAgent {
                        key: index,
                        agent_index,
                        answer_format: AnswerFormat::Text,
                        uses_own_model: false,
                        messages,
                        limit,
                    }));
                }
                _ => {}
            }
        }
        if !acts.is_empty() {
            return NodeAction::StartTasks(acts);
        }
        if running > 0 { NodeAction::Wait } else { self.calls_ended(graph) }
    }

    pub(super) fn handle_child_end(
        &mut self,
        graph: &AgentGraph,
        index: usize,
        answer: AgentAnswer,
    ) -> NodeAction {
        let output = match answer {
            Ok(text) => ToolOutput::from_text(text),
            Err(error) => ToolOutput::error(format!("the agent failed: {}", error.message)),
        };
        self.handle_call_end(graph, index, output)
    }

    pub(super) fn handle_call_end(
        &mut self,
        graph: &AgentGraph,
        index: usize,
        output: ToolOutput,
    ) -> NodeAction {
        match self.calls.get_mut(index) {
            Some(open) if matches!(open.state, CallState::Running { .. }) => {
                open.state = CallState::Ended(output);
            }
            _ => return NodeAction::Wait,
        }
        self.start_calls(graph)
    }

    /// All calls of the turn have ended: the model gets the results, or one of them is the answer.
    fn calls_ended(&mut self, graph: &AgentGraph) -> NodeAction {
        let mut passed = None;
        for open in std::mem::take(&mut self.calls) {
            let CallState::Ended(output) = open.state else { continue };
            if (open.passes || output.is_final) && !output.is_error && passed.is_none() {
                passed = Some(output.text.clone());
            }
            self.messages.push(Message::tool(&open.call, output));
        }
        match passed {
            Some(text) => NodeAction::Done(self.pass(graph, text)),
            None => self.ask_again(graph),
        }
    }

    /// The result of a tool is the answer, if it has the right format.
    fn pass(&self, graph: &AgentGraph, text: String) -> AgentAnswer {
        let Some(schema) = self.schema(graph) else { return Ok(text) };
        match schema.check(&text) {
            SchemaVerdict::Valid(result) => Ok(result),
            SchemaVerdict::Invalid(violations) => {
                let what = violations.join("; ");
                let message = format!("the result of the tool does not satisfy the JSON schema: {what}");
                Err(RowError {
                    raw_text: Some(text),
                    ..RowError::new(RowErrorKind::StructuredOutput, message)
                })
            }
        }
    }
}

impl OpenToolCall {
    fn has_ended(&self) -> bool {
        matches!(self.state, CallState::Ended(_))
    }
}

fn agent_of(graph: &AgentGraph, agent_index: usize) -> Option<&AgentSettings> {
    match &graph.agents().get(agent_index)?.kind {
        AgentKind::Agent(agent) => Some(agent),
        _ => None,
    }
}

/// Decides what happens to a call. Errors in it are reported to the model at once.
fn plan(graph: &AgentGraph, agent_index: usize, mut call: ToolCall) -> OpenToolCall {
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".to_owned();
    }
    let agent = agent_of(graph, agent_index);
    let tool = agent.into_iter().flat_map(|agent| &agent.tools).find_map(|&index| {
        let tool = graph.tools().get(index)?;
        (tool.spec.name == call.name).then_some((index, tool))
    });
    let child =
        agent.into_iter().flat_map(|agent| &agent.children).find(|child| child.spec.name == call.name);
    let planned = match (tool, child) {
        (Some((_, tool)), _) if tool.route == ToolCallAction::Deny => {
            Err(format!("the tool `{}` is denied in this run", call.name))
        }
        (Some((index, tool)), _) => {
            check_arguments(tool.arguments.as_ref(), &call).map(|_| PlannedCall::Tool(index))
        }
        (None, Some(child)) => child_request(child, &call)
            .map(|request| PlannedCall::Child { agent_index: child.agent_index, request }),
        (None, None) => Err(unknown_tool(graph, agent, &call.name)),
    };
    let passes = tool.is_some_and(|(_, tool)| tool.route == ToolCallAction::Passthrough);
    match planned {
        Ok(planned) => OpenToolCall { call, state: CallState::Waiting(planned), passes },
        Err(what) => OpenToolCall { call, state: CallState::Ended(ToolOutput::error(what)), passes },
    }
}

/// The arguments, if they are a JSON object that satisfies the schema.
fn check_arguments(schema: Option<&ResultSchema>, call: &ToolCall) -> Result<serde_json::Value, String> {
    let value: serde_json::Value = serde_json::from_str(&call.arguments)
        .map_err(|error| format!("the arguments of `{}` are not JSON: {error}", call.name))?;
    if !value.is_object() {
        return Err(format!("the arguments of `{}` must be a JSON object", call.name));
    }
    match schema.map(|schema| schema.check(&call.arguments)) {
        Some(SchemaVerdict::Invalid(violations)) => Err(format!(
            "the arguments of `{}` do not satisfy its schema: {}",
            call.name,
            violations.join("; ")
        )),
        _ => Ok(value),
    }
}

/// The request to a child: its `message` argument if that is the only one, otherwise all arguments as JSON.
fn child_request(child: &ChildAgent, call: &ToolCall) -> Result<String, String> {
    let arguments = check_arguments(child.arguments.as_ref(), call)?;
    Ok(match arguments.as_object().map(|fields| (fields.len(), fields.get("message"))) {
        Some((1, Some(serde_json::Value::String(message)))) => message.clone(),
        _ => arguments.to_string(),
    })
}

fn unknown_tool(graph: &AgentGraph, agent: Option<&AgentSettings>, name: &str) -> String {
    let tools = agent.into_iter().flat_map(|agent| &agent.tools);
    let tools = tools
        .filter_map(|&index| graph.tools().get(index))
        .map(|tool: &AgentGraphTool| tool.spec.name.as_str());
    let children = agent.into_iter().flat_map(|agent| &agent.children).map(|child| child.spec.name.as_str());
    let names: Vec<&str> = tools.chain(children).collect();
    match names.is_empty() {
        true => format!("there is no tool `{name}`; there are no tools"),
        false => format!("there is no tool `{name}`; there are: {}", names.join(", ")),
    }
}
