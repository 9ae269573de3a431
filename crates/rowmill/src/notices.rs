//! Notices shown to the user when a run begins and ends.

use rowmill_core::limits::Spend;
use rowmill_core::ports::{Dataset, RunEvent};
use rowmill_core::redact::Redactor;
use rowmill_core::resume::ResumeCounts;
use rowmill_engine::RunOutcome;
use rowmill_types::settings::{ID_FIELD, OUTPUT, RETRY_UNKNOWN};
use rowmill_types::{DiagnosticText, Money, group_digits};

use crate::columns::no_rows_text;
use crate::control::{RunControl, RunNotice};
use crate::counts::{count_phrase, verb_form};
use crate::resume::listed_changes;
use crate::row_identity::RowIdentity;
use crate::spec::{OutputTarget, RunSpec};

/// The rows that a resume starts with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumedRows {
    /// All rows of the run.
    pub(crate) all: ResumeCounts,
    /// The selected rows among them, if they were counted.
    pub(crate) selected: Option<ResumeCounts>,
}

impl ResumedRows {
    /// What is known of the rows that the resume works on.
    pub(crate) fn counts(&self) -> ResumeCounts {
        self.selected.unwrap_or(self.all)
    }
}

/// Shows what a resume starts with.
pub(crate) fn notify_resume(
    control: &RunControl,
    resumed: Option<ResumedRows>,
    settings_unknown: bool,
    spent: Spend,
) {
    if resumed.is_some_and(|rows| rows.all == ResumeCounts::default()) {
        let text =
            format!("nothing to resume: sending every row; check {OUTPUT} if you expected an earlier run");
        (control.notice)(RunNotice::warning(text));
    } else if let Some(rows) = resumed {
        let counts = rows.counts();
        (control.notice)(RunNotice::info(format!(
            "resuming: skipping {}, retrying {} and {} with unknown outcome{}",
            count_phrase(counts.done, "finished row"),
            count_phrase(counts.failed, "failed row"),
            count_phrase(counts.unknown, "row"),
            if rows.selected.is_some() { "" } else { "; counts include rows that are not selected" },
        )));
        if counts.with_turns > 0 {
            let rows = counts.with_turns;
            let (continues, their) =
                (verb_form(rows, "continues", "continue"), verb_form(rows, "its", "their"));
            let text = format!("{} of them {continues} after {their} last finished call", group_digits(rows));
            (control.notice)(RunNotice::info(text));
        }
        notify_unsent(control, counts);
    }
    if spent != Spend::default() {
        control.observer.observe(&RunEvent::SpentBefore { spent });
    }
    if spent.cost > Money::ZERO {
        (control.notice)(RunNotice::info(format!(
            "spent before: at most {}, with interrupted calls at their maximum cost",
            spent.cost
        )));
    }
    if settings_unknown {
        (control.notice)(RunNotice::warning(
            "the earlier run's work folder is gone, so changes of the model, prompt or schema cannot be \
             detected, and a budget does not include earlier spending",
        ));
    }
}

/// Warns about rows that a resume does not send, because a tool may have run.
fn notify_unsent(control: &RunControl, counts: ResumeCounts) {
    if counts.cut_tools > 0 {
        let rows = counts.cut_tools;
        let is = verb_form(rows, "is", "are");
        let ends = verb_form(rows, "it ends", "they end");
        (control.notice)(RunNotice::warning(format!(
            "{} {is} not sent: the run was interrupted during a call of a tool that must not run twice; \
             {ends} as `OutcomeUnknown`",
            count_phrase(rows, "row")
        )));
    }
    if counts.undecided > 0 {
        let rows = counts.undecided;
        let (left, them) = match rows {
            1 => ("left as it is", "it"),
            _ => ("left as they are", "them"),
        };
        (control.notice)(RunNotice::warning(format!(
            "{} {left} because a tool may have run; use {RETRY_UNKNOWN} to retry {them}",
            count_phrase(rows, "row")
        )));
    }
}

/// Shows which folders were created, and what differs from the run that is resumed.
pub(crate) fn notify_folders_and_changes(
    control: &RunControl,
    made: Vec<DiagnosticText>,
    changes: &[DiagnosticText],
    known_by: &RowIdentity,
) {
    made.into_iter().for_each(|text| (control.notice)(RunNotice::info(text)));
    if !changes.is_empty() {
        (control.notice)(RunNotice::info(format!(
            "continuing with changed settings; finished rows are kept as they are:\n  {}",
            listed_changes(changes)
        )));
    }
    if known_by.adds_ids() {
        (control.notice)(RunNotice::info(format!(
            "rows of this run are identified by their numbers, because it was started without {ID_FIELD}; \
             their ids are added to the output when this command ends"
        )));
    }
}

/// Shows notices about the rows of a run that has ended, before its table is written.
pub(crate) fn notify_end(
    control: &RunControl,
    (spec, all_rows): (&RunSpec, &dyn Dataset),
    end: &RunOutcome,
    redactor: &Redactor,
) {
    let below = end.tally.below_min_rating;
    if below > 0 {
        (control.notice)(RunNotice::warning(format!(
            "{} {} an answer that is rated below the `min_rating` of its evaluator-optimizer; see \
             `below_min_rating` in the telemetry and in traces",
            group_digits(below),
            verb_form(below, "row has", "rows have")
        )));
    }
    notify_redactions(control, redactor);
    if end.stopped.is_none()
        && let Some(text) = no_rows_text(spec, &end.tally, all_rows)
    {
        (control.notice)(RunNotice::warning(text));
    }
    notify_table(control, &spec.output);
}

/// Reports that secrets were found in what was written.
pub(crate) fn notify_redactions(control: &RunControl, redactor: &Redactor) {
    let replaced = redactor.replaced_count();
    if replaced > 0 {
        (control.notice)(RunNotice::warning(format!(
            "known secrets were replaced by `***` in {} {} of the written data: results, errors, traces, \
             recorded answers and saved turns",
            group_digits(replaced),
            verb_form(replaced, "place", "places")
        )));
    }
}

/// Announces a large table, because writing it takes a while without other progress.
fn notify_table(control: &RunControl, output: &OutputTarget) {
    if matches!(output, OutputTarget::Table(_)) && !output.is_stdout() {
        (control.notice)(RunNotice::info(format!("writing `{}`", output.name())));
    }
}
