//! Workflows: agents that direct other agents.

mod chain;
mod evaluator_optimizer;
mod instruction;
mod maker;
mod orchestrator;
mod parallel;
mod plan_text;
mod router;

pub use instruction::instruction;

use rowmill_types::{Attachment, ErrorKind, Message, RowError};
use serde::de::DeserializeOwned;

use self::chain::Chain;
use self::evaluator_optimizer::EvaluatorOptimizer;
use self::maker::Maker;
use self::orchestrator::Orchestrator;
use self::parallel::Parallel;
use self::router::Router;
use super::cast::{Cast, Kind, Member};
use super::form::Form;
use super::step::{Act, Answer, Begin, Move};
use super::transcript::Shortfall;

/// The decisions of a workflow; it has no side effects.
pub(super) trait Workflow: Send {
    /// Starts with the request.
    fn begin(&mut self, cast: &Cast, request: Vec<Message>) -> Move;

    /// An agent has ended; `key` is the key that it was started with.
    fn ended(&mut self, cast: &Cast, key: usize, answer: Answer) -> Move;

    /// How far the given answer falls short of the requested rating, if it does.
    fn shortfall(&self) -> Option<Shortfall> {
        None
    }
}

/// The workflow of an agent that is asked for an answer in `form`; `None` for a plain agent.
pub(super) fn of(member: usize, found: &Member, form: Form) -> Option<Box<dyn Workflow>> {
    Some(match &found.kind {
        Kind::Agent(_) => return None,
        Kind::Chain { sequence, cumulative } => Box::new(Chain::new(sequence, *cumulative, form)),
        Kind::Parallel { fan_out, fan_in, include_request } => {
            Box::new(Parallel::new(fan_out, *fan_in, *include_request, form))
        }
        Kind::Router { agents } => Box::new(Router::new(member, agents, form)),
        Kind::EvaluatorOptimizer { .. } => Box::new(EvaluatorOptimizer::new(member, &found.kind, form)?),
        Kind::Orchestrator { agents, plan, iterations } => {
            Box::new(Orchestrator::new(member, agents, (*plan, *iterations), form))
        }
        Kind::Maker { .. } => Box::new(Maker::new(&found.kind, form)?),
    })
}

/// Starts one agent.
fn have(key: usize, member: usize, form: Form, messages: Vec<Message>) -> Move {
    Move::Act(vec![start(key, member, form, messages)])
}

/// Asks a workflow's own model.
fn ask_own(key: usize, member: usize, form: Form, messages: Vec<Message>) -> Move {
    Move::Act(vec![Act::Start(Begin { key, member, form, own: true, messages, limit: None })])
}

fn start(key: usize, member: usize, form: Form, messages: Vec<Message>) -> Act {
    Act::Start(Begin { key, member, form, own: false, messages, limit: None })
}

/// The request as text: the last message, because the earlier ones lead up to it.
fn text_of(request: &[Message]) -> &str {
    request.last().map_or("", |message| message.text.as_str())
}

fn files_of(request: &[Message]) -> Vec<Attachment> {
    request.iter().flat_map(|message| message.attachments.iter().cloned()).collect()
}

/// A message with a request, including its files.
fn with_files(request: &[Message], text: String) -> Message {
    Message { attachments: files_of(request), ..Message::user(text) }
}

/// Ends a workflow because an agent failed. The message names the agent.
fn failed(cast: &Cast, member: usize, error: RowError) -> Move {
    Move::Done(Err(named(cast, member, error)))
}

fn named(cast: &Cast, member: usize, error: RowError) -> RowError {
    let name = format!("`{}`", cast.name(member));
    // The error of an agent that has used up its turns names the agent already.
    if error.message.starts_with(&format!("{name} ")) {
        return error;
    }
    RowError { message: format!("{name}: {}", error.message.marked()).into(), ..error }
}

/// Parses an answer that satisfies the schema of its format.
fn read<T: DeserializeOwned>(answer: &str) -> Result<T, RowError> {
    serde_json::from_str(answer).map_err(|error| {
        let message = format!("the answer does not have the requested format: {error}");
        RowError { raw_text: Some(answer.to_owned()), ..RowError::new(ErrorKind::StructuredOutput, message) }
    })
}

fn names(cast: &Cast, members: &[usize]) -> String {
    let names: Vec<String> = members.iter().map(|&member| format!("`{}`", cast.name(member))).collect();
    names.join(", ")
}

/// The agent among `members` with this name.
fn find(cast: &Cast, members: &[usize], name: &str) -> Option<usize> {
    members.iter().copied().find(|&member| cast.name(member) == name.trim())
}
