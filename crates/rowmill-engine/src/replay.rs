//! Going on with a row from the turns that were finished before a crash.

use std::collections::BTreeMap;

use rowmill_core::agent::{Cast, Course, Happening, ToolNote};
use rowmill_core::record::ToolReport;
use rowmill_types::{ErrorKind, RowError};

use crate::prepared::{Prepared, Recalled, spent};

/// Brings a row to where it was, with what was called for it until then.
///
/// # Errors
///
/// A tool was running that must not run twice, or the kept turns are not of this cast.
pub(crate) fn replay(cast: &Cast, prepared: &mut Prepared) -> Result<(), RowError> {
    let mut course = Course::start(cast, std::mem::take(&mut prepared.messages));
    let mut running = BTreeMap::new();
    let Recalled { happenings, told } = std::mem::take(&mut prepared.recalled);
    for (place, happening) in happenings.into_iter().enumerate() {
        let is_told = place < told;
        match &happening {
            Happening::ToolStarted { node, index, tool } => {
                running.insert((*node, *index), tool.clone());
            }
            Happening::ToolEnded { node, index, note, .. } => {
                running.remove(&(*node, *index));
                let report = note.as_ref().map(|note| report(cast, &course, *node, note));
                prepared.before.tools.extend(report.filter(|_| !is_told));
            }
            Happening::Answered { calls, .. } | Happening::Failed { calls, .. } if is_told => {
                prepared.before.told = prepared.before.told.plus(spent(calls));
            }
            Happening::Answered { calls, .. } | Happening::Failed { calls, .. } => {
                prepared.before.calls.extend(calls.iter().cloned());
            }
            Happening::Expired { .. } => {}
        }
        course.replay(cast, happening).map_err(|what| {
            let message = format!("the turns that were kept do not fit the agents: {what}");
            RowError::new(ErrorKind::Internal, message)
        })?;
    }
    if let Some(tool) = running.into_values().next() {
        let message = format!(
            "the run was cut while the tool `{tool}` ran, which must not run twice; whether it took effect is unknown"
        );
        return Err(RowError::new(ErrorKind::OutcomeUnknown, message));
    }
    prepared.course = Some(Box::new(course));
    Ok(())
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
