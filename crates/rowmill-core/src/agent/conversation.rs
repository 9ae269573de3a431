//! One agent's conversation with its model: turns, tool calls, corrections.

use rowmill_types::{Completion, ErrorKind, Finish, Message, Role, RowError, ToolCall, ToolOutput};

use super::cast::{Agent, Cast, Child, Kind, Route, Tool};
use super::form::Form;
use super::step::{Act, Answer, Begin, Move, model_calls};
use super::transcript::{self, ToolNote, TurnNote};
use crate::judge::{Judgement, judge};
use crate::validate::{ResultSchema, Verdict};

pub(super) struct Conversation {
    member: usize,
    voice: usize,
    messages: Vec<Message>,
    /// The number of messages before the model's first one.
    given: usize,
    turns: u32,
    repairs: u32,
    /// The calls of the last turn that are open, and those that wait for a slot.
    calls: Vec<Open>,
    turn_notes: Vec<TurnNote>,
    tool_notes: Vec<ToolNote>,
}

/// A call of the last turn.
struct Open {
    call: ToolCall,
    state: CallState,
    passes: bool,
}

enum CallState {
    Waiting(Planned),
    Running { child: bool },
    Ended(ToolOutput),
}

/// The next action for a call.
enum Planned {
    Tool(usize),
    Child { member: usize, request: String },
}

impl Conversation {
    pub(super) fn new(cast: &Cast, member: usize, form: Form, request: Vec<Message>) -> Self {
        let examples = agent_of(cast, member).map(|agent| agent.examples.as_slice()).unwrap_or_default();
        let messages = if examples.is_empty() { request } else { [examples, &request].concat() };
        Self {
            member,
            voice: cast.voice(member, form),
            given: messages.len(),
            messages,
            turns: 0,
            repairs: 0,
            calls: Vec::new(),
            turn_notes: Vec::new(),
            tool_notes: Vec::new(),
        }
    }

    /// The model role and all messages so far, which are returned with the answer.
    pub(super) fn ask(&mut self) -> (usize, Vec<Message>) {
        self.turns += 1;
        (self.voice, std::mem::take(&mut self.messages))
    }

    pub(super) fn turns(&self) -> u32 {
        self.turns
    }

    pub(super) fn voice(&self) -> usize {
        self.voice
    }

    pub(super) fn give_back(&mut self, messages: Vec<Message>) {
        self.messages = messages;
    }

    /// The last text of the model, if there is one.
    pub(super) fn last_said(&self) -> Option<String> {
        let since = self.messages.get(self.given..).unwrap_or_default();
        let said = since.iter().rev().find(|message| message.role == Role::Assistant);
        said.map(|message| message.text.clone()).filter(|text| !text.is_empty())
    }

    pub(super) fn note_tool(&mut self, note: Option<ToolNote>) {
        self.tool_notes.extend(note);
    }

    /// Notes a call that was never answered.
    pub(super) fn note_unanswered(&mut self, call: &str, tool: &str) {
        let at = self.turn_notes.last().map(|turn| turn.end).unwrap_or_default();
        let (call, tool) = (call.to_owned(), tool.to_owned());
        self.tool_notes.push(ToolNote { call, tool, start: at, end: at, is_error: true });
    }

    /// The id of a call of the last turn.
    pub(super) fn call_id(&self, index: usize) -> Option<&str> {
        self.calls.get(index).map(|open| open.call.id.as_str())
    }

    /// How often an answer that violated the schema was requested again.
    pub(super) fn repairs(&self) -> u32 {
        self.repairs
    }

    pub(super) fn into_told(self, caller: Option<transcript::Caller>) -> transcript::Conversation {
        let Self { member, voice, messages, turn_notes, tool_notes, .. } = self;
        transcript::Conversation { member, voice, caller, messages, turns: turn_notes, tools: tool_notes }
    }

    pub(super) fn answered(
        &mut self,
        cast: &Cast,
        messages: Vec<Message>,
        completion: Completion,
        note: Option<TurnNote>,
    ) -> Move {
        self.messages = messages;
        self.turn_notes.extend(note);
        match completion.finish {
            Finish::Paused => {
                self.say(completion);
                self.ask_again(cast)
            }
            Finish::Complete if !completion.calls.is_empty() => self.called(cast, completion),
            _ => self.spoke(cast, completion),
        }
    }

    /// The model gave an answer, not tool calls.
    fn spoke(&mut self, cast: &Cast, completion: Completion) -> Move {
        let answer = match judge(&completion, self.schema(cast), self.repairs < cast.repairs) {
            Judgement::Text if cast.traced => Ok(completion.text.clone()),
            Judgement::Text => return Move::Done(Ok(completion.text)),
            Judgement::Json(result) => Ok(result),
            Judgement::Failed(error) => Err(error),
            Judgement::Repair(feedback) => {
                self.repairs += 1;
                self.say(completion);
                self.messages.push(Message::user(feedback));
                return self.ask_again(cast);
            }
        };
        if cast.traced {
            self.messages.push(Message::assistant(completion.text));
        }
        Move::Done(answer)
    }

    fn say(&mut self, completion: Completion) {
        let Completion { text, calls, echo, .. } = completion;
        self.messages.push(Message { calls, echo, ..Message::assistant(text) });
    }

    fn schema<'c>(&self, cast: &'c Cast) -> Option<&'c ResultSchema> {
        cast.voices().get(self.voice).and_then(|voice| voice.schema.as_ref())
    }

    fn ask_again(&self, cast: &Cast) -> Move {
        match self.turns_used_up(cast) {
            Some(error) => Move::Done(Err(error)),
            None => Move::Ask,
        }
    }

    fn turns_used_up(&self, cast: &Cast) -> Option<RowError> {
        let most = agent_of(cast, self.member).map_or(u32::MAX, |agent| agent.max_iterations);
        (self.turns >= most).then(|| {
            let who = cast.name(self.member);
            let message = format!("`{who}` has no result after {} (`max_iterations`)", model_calls(most));
            RowError { raw_text: self.last_said(), ..RowError::new(ErrorKind::TurnLimit, message) }
        })
    }

    /// The model requested tool calls.
    fn called(&mut self, cast: &Cast, completion: Completion) -> Move {
        let calls = completion.calls.clone();
        self.say(completion);
        self.calls = calls.into_iter().map(|call| plan(cast, self.member, call)).collect();
        let passes = self.calls.iter().any(|open| open.passes && !open.has_ended());
        // A tool must not take effect when its result cannot be reported to a model any more.
        if let Some(error) = self.turns_used_up(cast).filter(|_| !passes) {
            return Move::Done(Err(error));
        }
        self.start_calls(cast)
    }

    /// Starts as many calls as may run at once, or continues when all have ended.
    fn start_calls(&mut self, cast: &Cast) -> Move {
        let agent = agent_of(cast, self.member);
        let one_by_one = agent.is_some_and(|agent| agent.one_by_one);
        // With a limit of zero, no child would ever start.
        let most_children = agent.and_then(|agent| agent.max_parallel).unwrap_or(usize::MAX).max(1);
        let limit = agent.and_then(|agent| agent.child_timeout);
        let is_running = |child: bool| move |open: &&Open| matches!(&open.state, CallState::Running { child: is } if *is == child);
        let mut children = self.calls.iter().filter(is_running(true)).count();
        let mut running = children + self.calls.iter().filter(is_running(false)).count();
        let mut acts = Vec::new();
        for (index, open) in self.calls.iter_mut().enumerate() {
            let CallState::Waiting(planned) = &open.state else { continue };
            let is_child = matches!(planned, Planned::Child { .. });
            if (one_by_one && running > 0) || (is_child && children >= most_children) {
                continue;
            }
            running += 1;
            children += usize::from(is_child);
            let planned = std::mem::replace(&mut open.state, CallState::Running { child: is_child });
            match planned {
                CallState::Waiting(Planned::Tool(tool)) => {
                    acts.push(Act::Tool { index, tool, call: open.call.clone() });
                }
                CallState::Waiting(Planned::Child { member, request }) => {
                    let messages = vec![Message::user(request)];
                    acts.push(Act::Start(Begin {
                        key: index,
                        member,
                        form: Form::Text,
                        own: false,
                        messages,
                        limit,
                    }));
                }
                _ => {}
            }
        }
        if !acts.is_empty() {
            return Move::Act(acts);
        }
        if running > 0 { Move::Wait } else { self.calls_ended(cast) }
    }

    pub(super) fn child_ended(&mut self, cast: &Cast, index: usize, answer: Answer) -> Move {
        let output = match answer {
            Ok(text) => ToolOutput::of_text(text),
            Err(error) => ToolOutput::error(format!("the agent failed: {}", error.message)),
        };
        self.call_ended(cast, index, output)
    }

    pub(super) fn call_ended(&mut self, cast: &Cast, index: usize, output: ToolOutput) -> Move {
        match self.calls.get_mut(index) {
            Some(open) if matches!(open.state, CallState::Running { .. }) => {
                open.state = CallState::Ended(output);
            }
            _ => return Move::Wait,
        }
        self.start_calls(cast)
    }

    /// All calls of the turn have ended: the model gets the results, or one of them is the answer.
    fn calls_ended(&mut self, cast: &Cast) -> Move {
        let mut passed = None;
        for open in std::mem::take(&mut self.calls) {
            let CallState::Ended(output) = open.state else { continue };
            if (open.passes || output.is_final) && !output.is_error && passed.is_none() {
                passed = Some(output.text.clone());
            }
            self.messages.push(Message::tool(&open.call, output));
        }
        match passed {
            Some(text) => Move::Done(self.pass(cast, text)),
            None => self.ask_again(cast),
        }
    }

    /// The result of a tool is the answer, if it has the right format.
    fn pass(&self, cast: &Cast, text: String) -> Answer {
        let Some(schema) = self.schema(cast) else { return Ok(text) };
        match schema.check(&text) {
            Verdict::Valid(result) => Ok(result),
            Verdict::Invalid(violations) => {
                let what = violations.join("; ");
                let message = format!("the result of the tool does not satisfy the JSON schema: {what}");
                Err(RowError { raw_text: Some(text), ..RowError::new(ErrorKind::StructuredOutput, message) })
            }
        }
    }
}

impl Open {
    fn has_ended(&self) -> bool {
        matches!(self.state, CallState::Ended(_))
    }
}

fn agent_of(cast: &Cast, member: usize) -> Option<&Agent> {
    match &cast.members().get(member)?.kind {
        Kind::Agent(agent) => Some(agent),
        _ => None,
    }
}

/// Decides what happens to a call. Errors in it are reported to the model at once.
fn plan(cast: &Cast, member: usize, mut call: ToolCall) -> Open {
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".to_owned();
    }
    let agent = agent_of(cast, member);
    let tool = agent.into_iter().flat_map(|agent| &agent.tools).find_map(|&index| {
        let tool = cast.tools().get(index)?;
        (tool.spec.name == call.name).then_some((index, tool))
    });
    let child =
        agent.into_iter().flat_map(|agent| &agent.children).find(|child| child.spec.name == call.name);
    let planned = match (tool, child) {
        (Some((_, tool)), _) if tool.route == Route::Deny => {
            Err(format!("the tool `{}` is denied in this run", call.name))
        }
        (Some((index, tool)), _) => {
            check_arguments(tool.arguments.as_ref(), &call).map(|_| Planned::Tool(index))
        }
        (None, Some(child)) => {
            child_request(child, &call).map(|request| Planned::Child { member: child.member, request })
        }
        (None, None) => Err(unknown_tool(cast, agent, &call.name)),
    };
    let passes = tool.is_some_and(|(_, tool)| tool.route == Route::Passthrough);
    match planned {
        Ok(planned) => Open { call, state: CallState::Waiting(planned), passes },
        Err(what) => Open { call, state: CallState::Ended(ToolOutput::error(what)), passes },
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
        Some(Verdict::Invalid(violations)) => Err(format!(
            "the arguments of `{}` do not satisfy its schema: {}",
            call.name,
            violations.join("; ")
        )),
        _ => Ok(value),
    }
}

/// The request to a child: its `message` argument if that is the only one, otherwise all arguments as JSON.
fn child_request(child: &Child, call: &ToolCall) -> Result<String, String> {
    let arguments = check_arguments(child.arguments.as_ref(), call)?;
    Ok(match arguments.as_object().map(|fields| (fields.len(), fields.get("message"))) {
        Some((1, Some(serde_json::Value::String(message)))) => message.clone(),
        _ => arguments.to_string(),
    })
}

fn unknown_tool(cast: &Cast, agent: Option<&Agent>, name: &str) -> String {
    let tools = agent.into_iter().flat_map(|agent| &agent.tools);
    let tools = tools.filter_map(|&index| cast.tools().get(index)).map(|tool: &Tool| tool.spec.name.as_str());
    let children = agent.into_iter().flat_map(|agent| &agent.children).map(|child| child.spec.name.as_str());
    let names: Vec<&str> = tools.chain(children).collect();
    match names.is_empty() {
        true => format!("there is no tool `{name}`; there are no tools"),
        false => format!("there is no tool `{name}`; there are: {}", names.join(", ")),
    }
}
