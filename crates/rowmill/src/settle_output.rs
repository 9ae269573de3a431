//! Puts an output in order once the last row has ended.

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::resume::ResumeCounts;
use rowmill_data::output::{
    NewerRecords, OutputFile, RebuildReport, RemovedRows, ReorderReport, rewrite_error_file,
};
use rowmill_types::settings::RESUME;
use rowmill_types::{Problem, ProblemCode};

use crate::counts::count_phrase;
use crate::finish::EndedRun;
use crate::report::OutputChanges;
use crate::row_identity::{RowIdentity, SettleContext};
use crate::run_storage::RunStorage;
use crate::spec::RunSpec;

/// Completes an output, with one envelope per row in input order; returns what was changed.
pub(crate) fn settle_output(
    spec: &RunSpec,
    place: &RunStorage,
    output: &OutputFile,
    ended: &EndedRun,
) -> Result<OutputChanges, Problem> {
    let mut changes = OutputChanges::default();
    let is_whole = output.has_expected_content();
    if !is_whole {
        let RebuildReport { envelopes, set_aside } = make_whole(place, output, ended)?;
        check_nothing_lost(output, ended, envelopes)?;
        changes = OutputChanges { made_whole: true, set_aside, ..changes };
    } else if lacks_ledger_rows(spec, ended) {
        make_whole(place, output, ended)?;
    }
    if spec.existing.resumes() {
        let settling = SettleContext {
            is_settled: is_whole
                && !lacks_ledger_rows(spec, ended)
                && ended.found.is_settled
                && output.is_unwritten(),
            in_place: is_in_place(ended),
            expected_rows: ended.end.tally.skipped_rows + ended.end.tally.processed_rows,
            removed: spec.removed_rows,
            folder: place.folder.path(),
        };
        let order = ended.known_by.settle(output.path(), &ended.header, &settling)?;
        let ReorderReport { moved_rows, removed_rows, .. } = order;
        changes = match spec.removed_rows {
            RemovedRows::Keep => OutputChanges { moved_rows, removed_rows, ..changes },
            RemovedRows::Drop => OutputChanges { moved_rows, dropped_rows: removed_rows, ..changes },
        };
        if let Some(errors) = &spec.error_output {
            rewrite_error_file(output.path(), errors)?;
        }
    }
    output.sync()?;
    Ok(changes)
}

/// Whether the output may lack rows that were in the ledger at the start: after a crash such rows are
/// published when the input reaches them, and this part of the run did not reach all of them.
fn lacks_ledger_rows(spec: &RunSpec, ended: &EndedRun) -> bool {
    let met_all =
        ended.end.stopped.is_none() && spec.selects_all() && ended.end.skipped == ended.found.places;
    ended.found.has_ledger_rows && !met_all
}

/// Whether the rows of an earlier part of the run certainly have the same numbers as before: all of
/// them were done, and were found again with their numbers.
fn is_in_place(ended: &EndedRun) -> bool {
    let only_done = ended
        .found
        .counts
        .is_some_and(|counts| counts == ResumeCounts { done: counts.done, ..ResumeCounts::default() });
    only_done && ended.end.stopped.is_none() && ended.end.skipped == ended.found.places
}

/// Rebuilds an output from the ledger, and from what is left of it.
fn make_whole(place: &RunStorage, output: &OutputFile, ended: &EndedRun) -> Result<RebuildReport, Problem> {
    let mut records = match ended.known_by {
        RowIdentity::ById(_) => NewerRecords::default(),
        RowIdentity::ByNumber(_) => NewerRecords::by_row_number(),
    };
    place.store.scan(&mut |scanned| {
        if let LedgerEvent::Ended(head) = scanned.event {
            records.add(&head.id, head.number, scanned.id);
        }
        Ok(())
    })?;
    output.rebuild(&place.store, records)
}

/// Checks that nothing is missing that an earlier part of the run wrote only to the output.
fn check_nothing_lost(output: &OutputFile, ended: &EndedRun, envelopes: u64) -> Result<(), Problem> {
    let before = ended.found.counts.unwrap_or_default();
    let expected = before.done + before.undecided + before.given_up + ended.end.tally.processed_rows;
    if envelopes >= expected {
        return Ok(());
    }
    let lost = count_phrase(expected - envelopes, "envelope");
    let message = format!(
        "`{}` was modified during the run, and lost {lost} of an earlier part of the run",
        output.path().display()
    );
    Err(Problem::new(ProblemCode::WriteFailed, message).hint(format!(
        "everything answered by this part of the run has been restored; run the same command with {RESUME} \
         to send the rows whose envelopes are lost"
    )))
}
