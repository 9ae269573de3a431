//! Going on with a row from the turns that were finished before a crash.

use std::collections::BTreeMap;

use rowmill_core::agent::{Cast, Course, Happening, ToolNote};
use rowmill_core::asked::asked_key;
use rowmill_core::ports::AskedKey;
use rowmill_core::record::ToolReport;
use rowmill_types::{ErrorKind, Message, RowError};

use crate::prepared::{Prepared, Recalled, spent};

/// Names what a row asks, apart from who is asked: that is the same for all turns of a ledger that
/// are still of use.
pub(crate) fn asked(messages: &[Message]) -> AskedKey {
    asked_key("", messages)
}

/// Brings a row to where it was, with what was called for it until then.
///
/// # Errors
///
/// A tool was running that must not run twice, or the kept turns are not of this cast.
pub(crate) fn replay(cast: &Cast, prepared: &mut Prepared) -> Result<(), RowError> {
    let Recalled { happenings, told, asked: before } = std::mem::take(&mut prepared.recalled);
    if before != Some(asked(&prepared.messages)) {
        // The row was changed since. What it asks now was never asked.
        return still_running(&happenings).map_or(Ok(()), |tool| Err(unknown(&tool)));
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
            let message = format!("the turns that were kept do not fit the agents: {what}");
            RowError::new(ErrorKind::Internal, message)
        })?;
    }
    if let Some(tool) = running {
        return Err(unknown(&tool));
    }
    prepared.course = Some(Box::new(course));
    Ok(())
}

/// A tool that must not run twice and had not ended.
fn still_running(happenings: &[Happening]) -> Option<String> {
    let mut running = BTreeMap::new();
    for happening in happenings {
        match happening {
            Happening::ToolStarted { node, index, tool } => {
                running.insert((*node, *index), tool.clone());
            }
            Happening::ToolEnded { node, index, .. } => {
                running.remove(&(*node, *index));
            }
            Happening::Answered { .. } | Happening::Failed { .. } | Happening::Expired { .. } => {}
        }
    }
    running.into_values().next()
}

fn unknown(tool: &str) -> RowError {
    let message = format!(
        "the run was cut while the tool `{tool}` ran, which must not run twice; whether it took effect is unknown"
    );
    RowError::new(ErrorKind::OutcomeUnknown, message)
}

fn report(cast: &Cast, course: &Course, node: usize, note: &ToolNote) -> ToolReport {
    let voice = course.voice_of(node).and_then(|voice| cast.voices().get(voice));
    let member = voice.and_then(|voice| cast.members().get(voice.member));
    ToolReport {
        agent: member.map(|member| member.name.clone()).unwrap_or_default(),
        tool: note.tool.clone(),
        ok: !note.is_error,
        duration: note.end.saturating_sub(note.start),
    }
}
