//! Notices shown to the user when a run begins and ends.

use rowmill_core::limits::Spend;
use rowmill_core::ports::{Dataset, Event};
use rowmill_core::redact::Redactor;
use rowmill_core::resume::ResumeCounts;
use rowmill_engine::RunEnd;
use rowmill_types::settings::{ID_FIELD, OUTPUT, RETRY_UNKNOWN};
use rowmill_types::{Money, Words, grouped};

use crate::columns::no_rows_text;
use crate::control::{Control, Notice};
use crate::counts::{counted, verb};
use crate::ids::KnownBy;
use crate::resume::listed_changes;
use crate::spec::{Output, RunSpec};

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
pub(crate) fn tell_beginning(
    control: &Control,
    resumed: Option<ResumedRows>,
    settings_unknown: bool,
    spent: Spend,
) {
    if resumed.is_some_and(|rows| rows.all == ResumeCounts::default()) {
        let text =
            format!("nothing to resume: sending every row; check {OUTPUT} if you expected an earlier run");
        (control.notice)(Notice::warning(text));
    } else if let Some(rows) = resumed {
        let counts = rows.counts();
        (control.notice)(Notice::info(format!(
            "resuming: skipping {}, retrying {} and {} with unknown outcome{}",
            counted(counts.done, "finished row"),
            counted(counts.failed, "failed row"),
            counted(counts.unknown, "row"),
            if rows.selected.is_some() { "" } else { "; counts include rows that are not selected" },
        )));
        if counts.with_turns > 0 {
            let rows = counts.with_turns;
            let (continues, their) = (verb(rows, "continues", "continue"), verb(rows, "its", "their"));
            let text = format!("{} of them {continues} after {their} last finished turn", grouped(rows));
            (control.notice)(Notice::info(text));
        }
        tell_unsent(control, counts);
    }
    if spent != Spend::default() {
        control.observer.observe(&Event::SpentBefore { spent });
    }
    if spent.cost > Money::ZERO {
        (control.notice)(Notice::info(format!("spent before: {}", spent.cost)));
    }
    if settings_unknown {
        (control.notice)(Notice::warning(
            "the earlier run's work folder is gone, so changes of the model, prompt or schema cannot be \
             detected, and a budget does not include earlier spending",
        ));
    }
}

/// Warns about rows that a resume does not send, because a tool may have run.
fn tell_unsent(control: &Control, counts: ResumeCounts) {
    if counts.cut_tools > 0 {
        let rows = counts.cut_tools;
        let is = verb(rows, "is", "are");
        let ends = verb(rows, "it ends", "they end");
        (control.notice)(Notice::warning(format!(
            "{} {is} not sent: the run was interrupted during a call of a tool that must not run twice; \
             {ends} as `OutcomeUnknown`",
            counted(rows, "row")
        )));
    }
    if counts.undecided > 0 {
        let rows = counts.undecided;
        let (left, them) = match rows {
            1 => ("left as it is", "it"),
            _ => ("left as they are", "them"),
        };
        (control.notice)(Notice::warning(format!(
            "{} {left} because a tool may have run; use {RETRY_UNKNOWN} to retry {them}",
            counted(rows, "row")
        )));
    }
}

/// Shows which folders were created, and what differs from the run that is resumed.
pub(crate) fn tell_made_and_changed(
    control: &Control,
    made: Vec<Words>,
    changes: &[Words],
    known_by: &KnownBy,
) {
    made.into_iter().for_each(|text| (control.notice)(Notice::info(text)));
    if !changes.is_empty() {
        (control.notice)(Notice::info(format!(
            "continuing with changed settings; finished rows are kept as they are:\n  {}",
            listed_changes(changes)
        )));
    }
    if known_by.adds_ids() {
        (control.notice)(Notice::info(format!(
            "rows of this run are identified by their numbers, because it was started without {ID_FIELD}; \
             their ids are added to the output when this command ends"
        )));
    }
}

/// Shows notices about the rows of a run that has ended, before its table is written.
pub(crate) fn tell_end(
    control: &Control,
    (spec, all_rows): (&RunSpec, &dyn Dataset),
    end: &RunEnd,
    redactor: &Redactor,
) {
    let below = end.tally.below_min_rating;
    if below > 0 {
        (control.notice)(Notice::warning(format!(
            "{} {} an answer that is rated below the `min_rating` of its evaluator-optimizer; see \
             `below_min_rating` in the telemetry and in traces",
            grouped(below),
            verb(below, "row has", "rows have")
        )));
    }
    tell_replaced(control, redactor);
    if end.stopped.is_none()
        && let Some(text) = no_rows_text(spec, &end.tally, all_rows)
    {
        (control.notice)(Notice::warning(text));
    }
    tell_table(control, &spec.output);
}

/// Reports that secrets were found in what was written.
pub(crate) fn tell_replaced(control: &Control, redactor: &Redactor) {
    let replaced = redactor.replaced();
    if replaced > 0 {
        (control.notice)(Notice::warning(format!(
            "known secrets were replaced by `***` in {} {} of the written data: results, errors, traces, \
             recorded answers and saved turns",
            grouped(replaced),
            verb(replaced, "place", "places")
        )));
    }
}

/// Announces a large table, because writing it takes a while without other progress.
fn tell_table(control: &Control, output: &Output) {
    if matches!(output, Output::Table(_)) && !output.is_stdout() {
        (control.notice)(Notice::info(format!("writing `{}`", output.name())));
    }
}
