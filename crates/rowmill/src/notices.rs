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
        let text = format!(
            "there is nothing to resume here yet, so every row is sent; check {OUTPUT} if there should be"
        );
        (control.notice)(Notice::warning(text));
    } else if let Some(rows) = resumed {
        let counts = rows.counts();
        let are = |count: u64, what: &str| format!("{} {}", counted(count, what), verb(count, "is", "are"));
        (control.notice)(Notice::info(format!(
            "resuming: {} done and skipped, {} tried again, {} with unknown outcome {} sent again{}",
            are(counts.done, "row"),
            are(counts.failed, "failed row"),
            counted(counts.unknown, "row"),
            verb(counts.unknown, "is", "are"),
            if rows.selected.is_some() { "" } else { "; rows that are not selected are counted, too" },
        )));
        if counts.with_turns > 0 {
            let rows = counts.with_turns;
            let (go, their) = (verb(rows, "goes", "go"), verb(rows, "its", "their"));
            let text = format!("{} of them {go} on after {their} last finished turn", grouped(rows));
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
            "the earlier run's work folder is gone, so a changed model, prompt or schema cannot be noticed, and a \
             budget does not know what was spent before",
        ));
    }
}

/// Warns about rows that a resume does not send, because a tool may have run.
fn tell_unsent(control: &Control, counts: ResumeCounts) {
    if counts.cut_tools > 0 {
        let rows = counts.cut_tools;
        let (is, them) = (verb(rows, "is", "are"), verb(rows, "it", "them"));
        let ends = verb(rows, "it ends", "they end");
        (control.notice)(Notice::warning(format!(
            "{} {is} not sent: the run was cut while a tool of {them} ran that must not run twice; {ends} as \
             `OutcomeUnknown`",
            counted(rows, "row")
        )));
    }
    if counts.undecided > 0 {
        let rows = counts.undecided;
        let (left, them) = match rows {
            1 => ("is left as it is", "it"),
            _ => ("are left as they are", "them"),
        };
        (control.notice)(Notice::warning(format!(
            "{} {left}: a tool may have run; {RETRY_UNKNOWN} works on {them} again",
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
            "going on with changed settings; rows that are ok stay as they are:\n  {}",
            listed_changes(changes)
        )));
    }
    if known_by.adds_ids() {
        (control.notice)(Notice::info(format!(
            "rows of this run are known by their numbers, because it began without {ID_FIELD}; their ids are \
             put into the output when this command ends"
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
            "{} {} an answer that is rated below the `min_rating` of its evaluator-optimizer; \
             `below_min_rating` in the telemetry and in traces tells which",
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
            "known secrets were replaced by `***` in {} {} of what was written: results, errors, traces, \
             recorded answers and kept turns",
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
