//! Continues a row from the turns that were finished before a crash.

use std::collections::BTreeMap;

use rowmill_core::agent::{AgentGraph, RowState, StepEvent, ToolCallDetails};
use rowmill_core::answer_key::answer_key;
use rowmill_core::ports::AnswerKey;
use rowmill_core::record::ToolCallReport;
use rowmill_types::{Message, RowError, RowErrorKind};

use crate::prepared::{EarlierEvents, PreparedRow, spent_on_calls};

/// How much of a call's arguments a message shows.
const SHOWN_ARGUMENTS: usize = 300;

/// Identifies a row's request without the model and its settings: those are the same for all turns in a ledger that are
/// still usable.
pub(crate) fn question_key(messages: &[Message]) -> AnswerKey {
    answer_key("", messages)
}

/// Restores a row to its state before the crash, including the calls made for it.
///
/// # Errors
///
/// A tool that must not run twice was running, or the kept turns belong to another agent graph.
pub(crate) fn replay_row(graph: &AgentGraph, prepared: &mut PreparedRow) -> Result<(), RowError> {
    let EarlierEvents { step_events, reported, question_key: before, was_parked, .. } =
        std::mem::take(&mut prepared.earlier_events);
    prepared.earlier_calls.uncounted = was_parked;
    if before != Some(question_key(&prepared.messages)) {
        // The row has changed since. Its current request was never sent.
        return still_running(&step_events).map_or(Ok(()), |cut| Err(cut.error(graph, None)));
    }
    let mut row_state = RowState::start(graph, prepared.messages.clone());
    let running = still_running(&step_events);
    for (place, step_event) in step_events.into_iter().enumerate() {
        let is_reported = place < reported;
        match &step_event {
            StepEvent::ToolEnded { node, note, .. } => {
                let report = note.as_ref().map(|note| report(graph, &row_state, *node, note));
                prepared.earlier_calls.tools.extend(report.filter(|_| !is_reported));
            }
            StepEvent::ModelAnswered { calls, .. } | StepEvent::ModelFailed { calls, .. } if is_reported => {
                prepared.earlier_calls.reported = prepared.earlier_calls.reported.plus(spent_on_calls(calls));
            }
            StepEvent::ModelAnswered { calls, .. } | StepEvent::ModelFailed { calls, .. } => {
                prepared.earlier_calls.calls.extend(calls.iter().cloned());
            }
            StepEvent::ToolStarted { .. } | StepEvent::NodeTimedOut { .. } => {}
        }
        row_state.apply_event(graph, step_event).map_err(|what| {
            let message = format!("the saved turns do not match the agents: {what}");
            RowError::new(RowErrorKind::Internal, message)
        })?;
    }
    let cut = running.map(|cut| {
        row_state.add_unanswered_tool_call(cut.node, &cut.call, &cut.tool);
        cut.error(graph, Some(&row_state))
    });
    // If the row ends here, the conversation so far belongs in its trace.
    prepared.row_state = Some(Box::new(row_state));
    cut.map_or(Ok(()), Err)
}

/// A call that never returned.
struct UnansweredToolCall {
    node: usize,
    tool: String,
    call: String,
    arguments: String,
    turn: u32,
}

impl UnansweredToolCall {
    /// The error of the row, with everything that helps to find out what the tool did.
    fn error(&self, graph: &AgentGraph, row_state: Option<&RowState>) -> RowError {
        let Self { node, tool, call, arguments, turn } = self;
        let agent =
            row_state.map(|row_state| agent_name(graph, row_state, *node)).filter(|name| !name.is_empty());
        let mut message = match agent {
            Some(agent) => format!("the run was interrupted while `{agent}` called the tool `{tool}`"),
            None => format!("the run was interrupted while the tool `{tool}` was called"),
        };
        if !arguments.is_empty() {
            let end = arguments.floor_char_boundary(SHOWN_ARGUMENTS);
            let shown = arguments.get(..end).unwrap_or_default();
            let more = if end < arguments.len() { "…" } else { "" };
            message.push_str(&format!(" with `{shown}{more}`"));
        }
        if *turn > 0 {
            let id = if call.is_empty() { String::new() } else { format!(", call id `{call}`") };
            message.push_str(&format!(" (model call {turn} of the row{id})"));
        }
        message.push_str(
            ", which must not run twice; the call was made once and no answer arrived before the \
             interruption, so it is unknown whether it took effect",
        );
        RowError::new(RowErrorKind::OutcomeUnknown, message)
    }
}

/// A call that must not be repeated and had not ended.
fn still_running(step_events: &[StepEvent]) -> Option<UnansweredToolCall> {
    let mut running = BTreeMap::new();
    for step_event in step_events {
        match step_event {
            StepEvent::ToolStarted { node, index, tool, call, arguments, turn } => {
                let (tool, call, arguments) = (tool.clone(), call.clone(), arguments.clone());
                running.insert(
                    (*node, *index),
                    UnansweredToolCall { node: *node, tool, call, arguments, turn: *turn },
                );
            }
            StepEvent::ToolEnded { node, index, .. } => {
                running.remove(&(*node, *index));
            }
            StepEvent::ModelAnswered { .. }
            | StepEvent::ModelFailed { .. }
            | StepEvent::NodeTimedOut { .. } => {}
        }
    }
    running.into_values().next()
}

fn report(graph: &AgentGraph, row_state: &RowState, node: usize, note: &ToolCallDetails) -> ToolCallReport {
    ToolCallReport {
        agent: agent_name(graph, row_state, node).to_owned(),
        tool: note.tool.clone(),
        ok: !note.is_error,
        duration: note.end.saturating_sub(note.start),
    }
}

fn agent_name<'c>(graph: &'c AgentGraph, row_state: &RowState, node: usize) -> &'c str {
    let model_role =
        row_state.node_model_role(node).and_then(|model_role| graph.model_roles().get(model_role));
    model_role
        .and_then(|model_role| graph.agents().get(model_role.agent_index))
        .map_or("", |agent_index| agent_index.name.as_str())
}
