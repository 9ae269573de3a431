//! Reads the ledger of an earlier run: the state of each row, and what was spent.

use std::collections::HashMap;

use crate::lane::is_known_event;
use rowmill_core::agent::StepEvent;
use rowmill_core::ledger::LedgerEvent;
use rowmill_core::limits::Spend;
use rowmill_core::ports::{LedgerExtensionEvent, LedgerPosition, RowStepEvent, RunStore, ScannedEvent};
use rowmill_core::record::{total_cost, total_usage};
use rowmill_core::resume::ResumeIndex;
use rowmill_core::run_header::RunHeader;
use rowmill_types::{Money, Problem, ProblemCode, RowId};

/// Reads the ledger; returns its end, and an upper bound on what the run has spent.
///
/// Each part of a run counts separately, because only a part with a budget records in advance what it
/// cannot exceed.
pub(crate) fn scan_ledger(
    store: &dyn RunStore,
    header: &RunHeader,
    resume: &mut ResumeIndex,
) -> Result<(LedgerPosition, Spend), Problem> {
    let mut recorded = RecordedSpend { sum: header.spent, open: HashMap::new() };
    let mut cover = None;
    let end = store.scan(&mut |scanned| {
        let ScannedEvent { id: record, event, line } = scanned;
        let is_new = record.position() >= header.counted;
        match event {
            LedgerEvent::Taken(rows) => resume.add_taken_rows(rows),
            LedgerEvent::Released(rows) => resume.add_released_rows(&rows),
            LedgerEvent::SpentAtMost(spent) if is_new => cover = Some(spent),
            LedgerEvent::SpentAtMost(_) => {}
            LedgerEvent::Parked(row) => resume.add_parked_row(&row),
            LedgerEvent::Note(note) => check_known(&note)?,
            LedgerEvent::Turn(_, id) => {
                let is_current = record.position() >= header.turns_from;
                let parsed = if is_new || is_current { RowStepEvent::parse(line).ok() } else { None };
                let step_event = parsed.map(|(_, step_event)| step_event);
                if is_current {
                    resume.add_step_event_record(&id, record);
                    step_event.iter().for_each(|step_event| resume.add_step_event(&id, step_event));
                }
                if let Some(step_event) = &step_event {
                    recorded.turn(id, step_event, TurnPart { is_new, is_current });
                }
            }
            LedgerEvent::Ended(head) => {
                resume.add_ended_row(&head, record);
                let tells_calls = recorded.ended(&head.id, line, is_new);
                if head.resumes_from_turns() && tells_calls {
                    resume.mark_turns_reported(&head.id);
                }
            }
        }
        Ok(())
    })?;
    // The budget of a part covers what was in flight at a crash; a part without a budget has no such
    // bound.
    Ok((end, cover.unwrap_or(recorded.sum)))
}

/// Rejects a ledger with a required entry that this version does not know.
fn check_known(note: &LedgerExtensionEvent) -> Result<(), Problem> {
    if !note.required || is_known_event(&note.kind) {
        return Ok(());
    }
    let message = format!("the ledger has an event that this version does not know: `{}`", note.kind);
    Err(Problem::new(ProblemCode::LedgerUnusable, message)
        .hint("continue with the version that started the run; nothing was changed"))
}

/// What turns and records say was spent, each call counted once.
struct RecordedSpend {
    sum: Spend,
    /// The usage of turns whose rows have no record yet.
    open: HashMap<RowId, Spend>,
}

/// Where in the ledger a turn is.
#[derive(Clone, Copy)]
struct TurnPart {
    /// Whether what it spent is not in the header's sum yet.
    is_new: bool,
    /// Whether a resume takes its row up after it.
    is_current: bool,
}

impl RecordedSpend {
    /// Adds the usage of a turn.
    fn turn(&mut self, row: RowId, step_event: &StepEvent, part: TurnPart) {
        let TurnPart { is_new, is_current } = part;
        let (StepEvent::ModelAnswered { calls, .. } | StepEvent::ModelFailed { calls, .. }) = step_event
        else {
            return;
        };
        let used = Spend { cost: total_cost(calls), tokens: total_usage(calls).tokens() };
        if is_new {
            self.sum = self.sum.plus(used);
        }
        if is_current {
            let open = self.open.entry(row).or_default();
            *open = open.plus(used);
        }
    }

    /// Adds the usage in a row's record, minus that of its turns. Returns whether the record contains
    /// any call.
    fn ended(&mut self, row: &RowId, line: &[u8], is_new: bool) -> bool {
        let is_open = self.open.contains_key(row);
        if !is_new && !is_open {
            return false;
        }
        let Ok(record) = serde_json::from_slice::<SpentFields>(line) else { return false };
        let usage = record.telemetry.usage;
        if usage.provider_attempts.is_empty() {
            return false;
        }
        let open = self.open.remove(row).unwrap_or_default();
        if is_new {
            let reported = usage.turn.input_tokens + usage.turn.output_tokens;
            let cost = usage.cost_usd.saturating_sub(open.cost);
            self.sum = self.sum.plus(Spend { cost, tokens: reported.saturating_sub(open.tokens) });
        }
        true
    }
}

#[derive(serde::Deserialize)]
struct SpentFields {
    telemetry: SpentTelemetry,
}

#[derive(serde::Deserialize)]
struct SpentTelemetry {
    usage: SpentUsage,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct SpentUsage {
    cost_usd: Money,
    turn: SpentTokens,
    provider_attempts: Vec<serde::de::IgnoredAny>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct SpentTokens {
    input_tokens: u64,
    output_tokens: u64,
}
