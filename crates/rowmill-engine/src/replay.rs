//! Continues a row from the turns that were finished before a crash.

use std::collections::BTreeMap;

use rowmill_core::agent::{Cast, Course, Happening, ToolNote};
use rowmill_core::asked::asked_key;
use rowmill_core::ports::AskedKey;
use rowmill_core::record::ToolReport;
use rowmill_types::{ErrorKind, Message, RowError};

use crate::prepared::{Prepared, Recalled, spent};

/// How much of a call's arguments a message shows.
const SHOWN_ARGUMENTS: usize = 300;

/// Identifies a row's request without the model and its settings: those are the same for all turns in a ledger that are
/// still usable.
pub(crate) fn asked(messages: &[Message]) -> AskedKey {
    asked_key("", messages)
}

/// Restores a row to its state before the crash, including the calls made for it.
///
/// # Errors
///
/// A tool that must not run twice was running, or the kept turns belong to another agent graph.
pub(crate) fn replay(cast: &Cast, prepared: &mut Prepared) -> Result<(), RowError> {
    let Recalled { happenings, told, asked: before, .. } = std::mem::take(&mut prepared.recalled);
    if before != Some(asked(&prepared.messages)) {
        // The row has changed since. Its current request was never sent.
        return still_running(&happenings).map_or(Ok(()), |cut| Err(cut.error(cast, None)));
    }
    let mut course = Course::start(cast, prepared.messages.clone());
    let running = still_running(&happenings);
    for (place, happening) in happenings.into_iter().enumerate() {
        let is_told = place < told;
        match &happening {
            Happening::ToolEnded { node, note, .. } => {
                let report = note.as_ref().map(|note| report(cast, &course, *node, note));
                prepared.before.tools.extend(report.filter(|_| !is_told));
            }
            Happening::Answered { calls, .. } | Happening::Failed { calls, .. } if is_told => {
                prepared.before.told = prepared.before.told.plus(spent(calls));
            }
            Happening::Answered { calls, .. } | Happening::Failed { calls, .. } => {
                prepared.before.calls.extend(calls.iter().cloned());
            }
            Happening::ToolStarted { .. } | Happening::Expired { .. } => {}
        }
        course.replay(cast, happening).map_err(|what| {
            let message = format!("the saved turns do not match the agents: {what}");
            RowError::new(ErrorKind::Internal, message)
        })?;
    }
    let cut = running.map(|cut| {
        course.note_unanswered(cut.node, &cut.call, &cut.tool);
        cut.error(cast, Some(&course))
    });
    // If the row ends here, the conversation so far belongs in its trace.
    prepared.course = Some(Box::new(course));
    cut.map_or(Ok(()), Err)
}

/// A call that never returned.
struct CutCall {
    node: usize,
    tool: String,
    call: String,
    arguments: String,
    turn: u32,
}

impl CutCall {
    /// The error of the row, with everything that helps to find out what the tool did.
    fn error(&self, cast: &Cast, course: Option<&Course>) -> RowError {
        let Self { node, tool, call, arguments, turn } = self;
        let agent = course.map(|course| member_name(cast, course, *node)).filter(|name| !name.is_empty());
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
        RowError::new(ErrorKind::OutcomeUnknown, message)
    }
}

/// A call that must not be repeated and had not ended.
fn still_running(happenings: &[Happening]) -> Option<CutCall> {
    let mut running = BTreeMap::new();
    for happening in happenings {
        match happening {
            Happening::ToolStarted { node, index, tool, call, arguments, turn } => {
                let (tool, call, arguments) = (tool.clone(), call.clone(), arguments.clone());
                running.insert((*node, *index), CutCall { node: *node, tool, call, arguments, turn: *turn });
            }
            Happening::ToolEnded { node, index, .. } => {
                running.remove(&(*node, *index));
            }
            Happening::Answered { .. } | Happening::Failed { .. } | Happening::Expired { .. } => {}
        }
    }
    running.into_values().next()
}

fn report(cast: &Cast, course: &Course, node: usize, note: &ToolNote) -> ToolReport {
    ToolReport {
        agent: member_name(cast, course, node).to_owned(),
        tool: note.tool.clone(),
        ok: !note.is_error,
        duration: note.end.saturating_sub(note.start),
    }
}

fn member_name<'c>(cast: &'c Cast, course: &Course, node: usize) -> &'c str {
    let voice = course.voice_of(node).and_then(|voice| cast.voices().get(voice));
    voice.and_then(|voice| cast.members().get(voice.member)).map_or("", |member| member.name.as_str())
}
