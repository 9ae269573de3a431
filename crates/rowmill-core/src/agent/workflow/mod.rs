//! Workflows: agents that direct other agents.

mod chain;
mod evaluator_optimizer;
mod instruction;
mod maker;
mod orchestrator;
mod parallel;
mod plan_text;
mod router;

pub use instruction::system_instruction;

use rowmill_types::{Attachment, Message, RowError, RowErrorKind};
use serde::de::DeserializeOwned;

use self::chain::ChainWorkflow;
use self::evaluator_optimizer::EvaluatorOptimizerWorkflow;
use self::maker::MakerWorkflow;
use self::orchestrator::OrchestratorWorkflow;
use self::parallel::ParallelWorkflow;
use self::router::RouterWorkflow;
use super::answer_format::AnswerFormat;
use super::graph::{AgentDefinition, AgentGraph, AgentKind};
use super::step::{AgentAnswer, NodeAction, NodeTask, StartAgent};
use super::transcript::LowRating;

/// The decisions of a workflow; it has no side effects.
pub(super) trait Workflow: Send {
    /// Starts with the request.
    fn begin(&mut self, graph: &AgentGraph, request: Vec<Message>) -> NodeAction;

    /// An agent has ended; `key` is the key that it was started with.
    fn handle_agent_end(&mut self, graph: &AgentGraph, key: usize, answer: AgentAnswer) -> NodeAction;

    /// How far the given answer falls short of the requested rating, if it does.
    fn low_rating(&self) -> Option<LowRating> {
        None
    }
}

/// The workflow of an agent that is asked for an answer in `form`; `None` for a plain agent.
pub(super) fn of(
    agent_index: usize,
    found: &AgentDefinition,
    form: AnswerFormat,
) -> Option<Box<dyn Workflow>> {
    Some(match &found.kind {
        AgentKind::Agent(_) => return None,
        AgentKind::Chain { sequence, cumulative } => {
            Box::new(ChainWorkflow::new(sequence, *cumulative, form))
        }
        AgentKind::Parallel { fan_out, fan_in, include_request } => {
            Box::new(ParallelWorkflow::new(fan_out, *fan_in, *include_request, form))
        }
        AgentKind::Router { agents } => Box::new(RouterWorkflow::new(agent_index, agents, form)),
        AgentKind::EvaluatorOptimizer { .. } => {
            Box::new(EvaluatorOptimizerWorkflow::new(agent_index, &found.kind, form)?)
        }
        AgentKind::Orchestrator { agents, plan, iterations } => {
            Box::new(OrchestratorWorkflow::new(agent_index, agents, (*plan, *iterations), form))
        }
        AgentKind::Maker { .. } => Box::new(MakerWorkflow::new(&found.kind, form)?),
    })
}

/// Starts one agent.
fn have(key: usize, agent_index: usize, form: AnswerFormat, messages: Vec<Message>) -> NodeAction {
    NodeAction::StartTasks(vec![start(key, agent_index, form, messages)])
}

/// Asks a workflow's own model.
fn ask_own(key: usize, agent_index: usize, form: AnswerFormat, messages: Vec<Message>) -> NodeAction {
    NodeAction::StartTasks(vec![NodeTask::Start(StartAgent {
        key,
        agent_index,
        answer_format: form,
        uses_own_model: true,
        messages,
        limit: None,
    })])
}

fn start(key: usize, agent_index: usize, form: AnswerFormat, messages: Vec<Message>) -> NodeTask {
    NodeTask::Start(StartAgent {
        key,
        agent_index,
        answer_format: form,
        uses_own_model: false,
        messages,
        limit: None,
    })
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
fn failed(graph: &AgentGraph, agent_index: usize, error: RowError) -> NodeAction {
    NodeAction::Done(Err(named(graph, agent_index, error)))
}

fn named(graph: &AgentGraph, agent_index: usize, error: RowError) -> RowError {
    let name = format!("`{}`", graph.agent_name(agent_index));
    // The error of an agent that has used up its turns names the agent already.
    if error.message.starts_with(&format!("{name} ")) {
        return error;
    }
    RowError { message: format!("{name}: {}", error.message.with_mention_markers()).into(), ..error }
}

/// Parses an answer that satisfies the schema of its format.
fn read<T: DeserializeOwned>(answer: &str) -> Result<T, RowError> {
    serde_json::from_str(answer).map_err(|error| {
        let message = format!("the answer does not have the requested format: {error}");
        RowError {
            raw_text: Some(answer.to_owned()),
            ..RowError::new(RowErrorKind::StructuredOutput, message)
        }
    })
}

fn names(graph: &AgentGraph, agents: &[usize]) -> String {
    let names: Vec<String> =
        agents.iter().map(|&agent_index| format!("`{}`", graph.agent_name(agent_index))).collect();
    names.join(", ")
}

/// The agent among `agents` with this name.
fn find(graph: &AgentGraph, agents: &[usize], name: &str) -> Option<usize> {
    agents.iter().copied().find(|&agent_index| graph.agent_name(agent_index) == name.trim())
}
