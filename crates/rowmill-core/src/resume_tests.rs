use std::cell::Cell;
use std::hash::Hasher;

use rowmill_types::ToolOutput;

use super::*;
use crate::ports::LedgerPosition;

fn record(key: u64) -> LedgerRecordId {
    LedgerRecordId::new(LedgerPosition::from_key(key), 1)
}

fn head(number: u64, ok: bool) -> EnvelopeHead {
    EnvelopeHead {
        id: RowId::Number(number),
        number,
        ok,
        interrupted: false,
        stopped: false,
        outcome_unknown: false,
        number_stands_in: false,
    }
}

fn named<const ROWS: usize>(numbers: [u64; ROWS]) -> Vec<NamedRow> {
    numbers.map(|number| NamedRow { number, id: RowId::Number(number) }).to_vec()
}

fn with_ids<const ROWS: usize>(numbers: [u64; ROWS]) -> Vec<NamedRow> {
    numbers.map(|number| NamedRow { number, id: RowId::Text(format!("r{number}").into()) }).to_vec()
}

#[test]
fn a_row_stands_where_output_and_ledger_left_it() {
    let span = record(9);
    let mut resume = ResumeIndex::default();
    resume.add_output_row(&head(1, true));
    resume.add_output_row(&head(2, false));
    resume.add_taken_rows(named([1, 2, 3, 4, 5]));
    resume.add_ended_row(&head(1, true), span);
    resume.add_ended_row(&head(2, false), span);
    resume.add_ended_row(&head(3, true), span);
    resume.add_ended_row(&head(4, false), span);
    let standing = |number| resume.row_status(&RowId::Number(number), number);
    assert_eq!(
        [1, 2, 3, 4, 5, 6].map(standing),
        [
            ResumeRowStatus::Done,
            ResumeRowStatus::Failed,
            ResumeRowStatus::Kept(span),
            ResumeRowStatus::Failed,
            ResumeRowStatus::Unknown,
            ResumeRowStatus::New
        ]
    );
}

#[test]
fn the_counts_of_all_rows_are_those_of_the_run() {
    let span = record(9);
    let mut resume = ResumeIndex::default();
    resume.add_output_row(&head(1, true));
    resume.add_output_row(&head(2, false));
    resume.add_output_row(&EnvelopeHead { outcome_unknown: true, ..head(3, false) });
    resume.add_taken_rows(named([4, 5, 6, 7]));
    resume.add_ended_row(&head(4, true), span);
    resume.add_step_event_record(&RowId::Number(6), span);
    let (tool, call, arguments) = ("t".into(), "c".into(), "{}".into());
    let started = StepEvent::ToolStarted { node: 0, index: 0, tool, call, arguments, turn: 1 };
    resume.add_step_event_record(&RowId::Number(7), span);
    resume.add_step_event(&RowId::Number(7), &started);
    let count = |numbers: std::ops::RangeInclusive<u64>| {
        let mut counts = ResumeCounts::default();
        numbers.for_each(|number| resume.add_row_to_counts(&RowId::Number(number), number, &mut counts));
        counts
    };
    assert_eq!(count(1..=8), resume.counts());
    assert_eq!(count(1..=2), ResumeCounts { done: 1, failed: 1, ..ResumeCounts::default() });
}

fn parked_for(row: u64, job: &str) -> ParkedRow {
    let id = RowId::Text(format!("r{row}").into());
    ParkedRow { row, id, waits_for: vec![job.into()], failed_before: None }
}

#[test]
fn a_row_that_waits_only_for_what_is_not_there_yet_is_left_alone() {
    let not_there_yet = ["out".to_owned()].into();
    let mut resume = ResumeIndex::default()
        .with_exclusions(ResumeExclusions { not_there_yet, ..ResumeExclusions::default() });
    let status = |resume: &ResumeIndex, row| resume.row_status(&parked_for(row, "").id, row);
    resume.add_parked_row(&parked_for(1, "out"));
    resume.add_parked_row(&parked_for(2, "back"));
    let both = vec!["out".into(), "back".into()];
    resume.add_parked_row(&ParkedRow { waits_for: both, ..parked_for(3, "") });
    assert_eq!(status(&resume, 1), ResumeRowStatus::Waiting);
    assert_eq!([2, 3].map(|row| status(&resume, row)), [ResumeRowStatus::Parked; 2]);
    assert_eq!(resume.counts(), ResumeCounts { parked: 3, ..ResumeCounts::default() });
    // The latest wait counts, and a row that is taken again waits for nothing.
    resume.add_parked_row(&parked_for(1, "back"));
    resume.add_parked_row(&parked_for(2, "out"));
    assert_eq!(status(&resume, 1), ResumeRowStatus::Parked);
    assert_eq!(status(&resume, 2), ResumeRowStatus::Waiting);
    resume.add_taken_rows(with_ids([2]));
    assert_eq!(status(&resume, 2), ResumeRowStatus::Unknown);
}

#[test]
fn a_failure_of_an_earlier_pass_is_final_and_one_of_an_earlier_process_is_not() {
    let scope =
        ResumeExclusions { failures_final_from: Some(record(5).position()), ..ResumeExclusions::default() };
    let mut resume = ResumeIndex::default().with_exclusions(scope);
    let status = |resume: &ResumeIndex, row| resume.row_status(&RowId::Number(row), row);
    resume.mark_settled_to(record(8).position());
    for (row, at) in [(1, 3), (2, 6), (3, 9)] {
        resume.add_ended_row(&head(row, false), record(at));
    }
    assert_eq!(status(&resume, 1), ResumeRowStatus::Failed);
    assert_eq!(status(&resume, 2), ResumeRowStatus::Done, "the output has its failure");
    assert_eq!(status(&resume, 3), ResumeRowStatus::Kept(record(9)), "the output lacks its failure");
    assert_eq!(resume.counts(), ResumeCounts { failed: 1, given_up: 2, ..ResumeCounts::default() });
    resume.add_ended_row(&head(2, true), record(10));
    assert_eq!(resume.counts(), ResumeCounts { failed: 1, given_up: 1, done: 1, ..ResumeCounts::default() });
}

#[test]
fn what_a_parked_row_is_called_in_requests_stays_the_same_until_it_ends() {
    let mut resume = ResumeIndex::default();
    let parked = ParkedRow { failed_before: Some(RunEpoch(4)), ..parked_for(1, "job") };
    resume.add_parked_row(&parked);
    assert_eq!(resume.parked_row_retry_epoch(&parked.id), Some(RunEpoch(4)));
    resume.add_ended_row(&EnvelopeHead { id: parked.id.clone(), ..head(1, true) }, record(1));
    assert_eq!(resume.parked_row_retry_epoch(&parked.id), None);
}

#[test]
fn a_parked_row_is_neither_in_flight_nor_unknown_until_it_is_taken_again() {
    let parked = |row| parked_for(row, "job");
    let standing = |resume: &ResumeIndex, row: u64| resume.row_status(&parked(row).id, row);
    let mut resume = ResumeIndex::default();
    resume.add_taken_rows(with_ids([1, 2, 3]));
    for row in [1, 2, 3] {
        resume.add_parked_row(&parked(row));
    }
    assert_eq!(resume.counts(), ResumeCounts { parked: 3, ..ResumeCounts::default() });
    // Their numbers may have changed by now.
    assert_eq!([1, 9].map(|row| resume.row_status(&parked(1).id, row)), [ResumeRowStatus::Parked; 2]);
    resume.add_taken_rows(with_ids([2, 3]));
    assert_eq!(standing(&resume, 2), ResumeRowStatus::Unknown);
    assert_eq!(resume.counts(), ResumeCounts { parked: 1, unknown: 2, ..ResumeCounts::default() });
    resume.add_released_rows(&with_ids([2]));
    assert_eq!(standing(&resume, 2), ResumeRowStatus::Parked);
    resume.add_ended_row(&EnvelopeHead { id: parked(3).id, ..head(3, true) }, record(1));
    assert_eq!(standing(&resume, 3), ResumeRowStatus::Kept(record(1)));
    assert_eq!(resume.counts(), ResumeCounts { parked: 2, done: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_was_aborted_is_unknown_until_it_ends_otherwise() {
    let span = record(0);
    let mut resume = ResumeIndex::default();
    resume.add_taken_rows(named([7]));
    resume.add_ended_row(&EnvelopeHead { interrupted: true, ..head(7, false) }, span);
    assert_eq!(resume.counts(), ResumeCounts { unknown: 1, ..ResumeCounts::default() });
    resume.add_taken_rows(named([7]));
    resume.add_ended_row(&head(7, false), span);
    assert_eq!(resume.counts(), ResumeCounts { failed: 1, ..ResumeCounts::default() });
    resume.add_ended_row(&head(7, true), span);
    assert_eq!(resume.counts(), ResumeCounts { done: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_a_stop_left_unfinished_is_not_unknown_and_keeps_its_turns() {
    let span = record;
    let mut resume = ResumeIndex::default();
    resume.add_taken_rows(named([7, 8]));
    let id = RowId::Number(7);
    resume.add_step_event_record(&id, span(1));
    for number in [7, 8] {
        resume.add_ended_row(&EnvelopeHead { stopped: true, ..head(number, false) }, span(number));
    }
    let counts = ResumeCounts { failed: 2, with_turns: 1, ..ResumeCounts::default() };
    assert_eq!(resume.counts(), counts);
    let standing = |number| resume.row_status(&RowId::Number(number), number);
    assert_eq!([7, 8].map(standing), [ResumeRowStatus::Unknown, ResumeRowStatus::Failed]);
    assert_eq!(resume.step_event_records(&id), (&[span(1)][..], 0));
}

#[test]
fn a_row_with_turns_goes_on_from_them_until_it_has_ended() {
    let span = record;
    let mut resume = ResumeIndex::default();
    resume.add_taken_rows(named([7, 8]));
    let id = RowId::Number(7);
    resume.add_step_event_record(&id, span(1));
    resume.add_step_event_record(&id, span(2));
    // Released by a later part of the run, which had paid nothing yet.
    resume.add_released_rows(&named([7, 8]));
    assert_eq!(resume.row_status(&RowId::Number(7), 7), ResumeRowStatus::Unknown);
    assert_eq!(resume.row_status(&RowId::Number(8), 8), ResumeRowStatus::New);
    assert_eq!(resume.step_event_records(&id), (&[span(1), span(2)][..], 0));
    resume.add_ended_row(&EnvelopeHead { interrupted: true, ..head(7, false) }, span(3));
    resume.mark_turns_reported(&id);
    resume.add_step_event_record(&id, span(4));
    assert_eq!(resume.step_event_records(&id), (&[span(1), span(2), span(4)][..], 2));
    resume.add_ended_row(&head(7, false), span(5));
    assert_eq!(
        (resume.step_event_records(&id), resume.row_status(&RowId::Number(7), 7)),
        ((&[][..], 0), ResumeRowStatus::Failed)
    );
}

#[test]
fn a_row_whose_tool_may_have_run_is_passed_over_unless_it_is_asked_for() {
    let unknown = EnvelopeHead { outcome_unknown: true, ..head(3, false) };
    let mut left = ResumeIndex::new(false);
    left.add_output_row(&unknown);
    assert_eq!(left.row_status(&RowId::Number(3), 3), ResumeRowStatus::Done);
    assert_eq!(left.counts(), ResumeCounts { undecided: 1, ..ResumeCounts::default() });
    let mut again = ResumeIndex::new(true);
    again.add_output_row(&unknown);
    assert_eq!(again.row_status(&RowId::Number(3), 3), ResumeRowStatus::Failed);
    again.add_output_row(&head(3, true));
    assert_eq!(again.counts(), ResumeCounts { done: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_is_passed_over_is_published_from_the_ledger_if_the_output_lacks_it() {
    let unknown = |number| EnvelopeHead { outcome_unknown: true, ..head(number, false) };
    let span = record;
    let mut resume = ResumeIndex::new(false);
    resume.add_output_row(&unknown(1));
    resume.add_ended_row(&unknown(1), span(1));
    resume.add_ended_row(&unknown(2), span(2));
    resume.add_ended_row(&unknown(2), span(3));
    let standing = |number| resume.row_status(&RowId::Number(number), number);
    assert_eq!([1, 2].map(standing), [ResumeRowStatus::Done, ResumeRowStatus::Kept(span(3))]);
}

#[test]
fn a_row_whose_tool_was_running_is_not_counted_among_those_that_are_sent_again() {
    let started = |index| StepEvent::ToolStarted {
        node: 0,
        index,
        tool: "book".into(),
        call: "c".into(),
        arguments: "{}".into(),
        turn: 1,
    };
    let (output, note) = (ToolOutput::from_text("done"), None);
    let ended = StepEvent::ToolEnded { node: 0, index: 0, output, note };
    let mut resume = ResumeIndex::default();
    resume.add_taken_rows(named([1, 2, 3]));
    for (number, step_events) in
        [(1, vec![started(0), ended.clone()]), (2, vec![started(0), started(1), ended])]
    {
        for step_event in step_events {
            resume.add_step_event_record(&RowId::Number(number), record(1));
            resume.add_step_event(&RowId::Number(number), &step_event);
        }
    }
    let counts = ResumeCounts { unknown: 2, with_turns: 1, cut_tools: 1, ..ResumeCounts::default() };
    assert_eq!(resume.counts(), counts);
}

thread_local! {
    static LOOKS: Cell<usize> = const { Cell::new(0) };
}

/// A row that counts how often it is examined.
struct Watched(u64);

impl Watched {
    fn look(&self) -> u64 {
        LOOKS.set(LOOKS.get() + 1);
        self.0
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.look() == other.0
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.look().hash(state);
    }
}

#[test]
fn rows_that_are_given_back_are_looked_at_a_few_times_each_however_many_there_are() {
    const ROWS: u64 = 10_000;
    let rows = || (0..ROWS).map(Watched);
    let (mut in_flight, given_back): (HashSet<_>, Vec<_>) = (rows().collect(), rows().rev().collect());
    LOOKS.set(0);
    remove_all(&mut in_flight, given_back.into_iter());
    let looks = LOOKS.get();
    assert!(in_flight.is_empty() && looks < 4 * ROWS as usize, "{looks} looks at {ROWS} rows");
}

#[test]
fn a_resume_holds_some_twenty_bytes_for_a_row_that_only_the_ledger_has() {
    const ROWS: u64 = 100_000;
    let mut resume = ResumeIndex::default();
    for number in 0..ROWS {
        resume.add_taken_rows(named([number]));
        resume.add_step_event_record(&RowId::Number(number), record(number));
        resume.add_ended_row(&head(number, true), record(number));
    }
    assert_eq!(resume.counts(), ResumeCounts { done: ROWS, ..ResumeCounts::default() });
    // The rows in flight have left nothing behind.
    assert!(resume.in_flight.is_empty() && resume.turns.is_empty());
    assert!(resume.ok.is_empty() && resume.failed.is_empty() && resume.parked.is_empty());
    let held = resume.kept.bytes();
    assert!(held < 22 * ROWS as usize, "{held} bytes for {ROWS} rows");
}

#[test]
fn rows_in_flight_are_known_by_their_ids_although_others_have_their_numbers_by_now() {
    let id = |name: &str| RowId::Text(name.into());
    let named = |number, name: &str| NamedRow { number, id: id(name) };
    let mut resume = ResumeIndex::default();
    resume.add_taken_rows(vec![named(1, "a"), named(2, "b")]);
    // The run was killed; then rows moved, and others were sent under the same numbers.
    resume.add_taken_rows(vec![named(1, "c"), named(2, "d"), named(3, "b")]);
    assert_eq!(resume.counts(), ResumeCounts { unknown: 4, ..ResumeCounts::default() });
    resume.add_ended_row(&EnvelopeHead { id: id("b"), ..head(3, true) }, record(1));
    resume.add_released_rows(&[named(1, "c")]);
    let standing = |name: &str, number| resume.row_status(&id(name), number);
    assert_eq!(resume.counts(), ResumeCounts { done: 1, unknown: 2, ..ResumeCounts::default() });
    assert_eq!([standing("a", 9), standing("d", 8)], [ResumeRowStatus::Unknown; 2]);
    assert_eq!([standing("c", 1), standing("x", 2)], [ResumeRowStatus::New; 2]);
}

#[test]
fn rows_in_flight_of_a_ledger_without_ids_are_known_by_their_numbers() {
    let id = RowId::Text("a".into());
    let mut resume = ResumeIndex::default();
    resume.add_taken_rows(named([1, 2]));
    assert_eq!(resume.row_status(&id, 1), ResumeRowStatus::Unknown);
    resume.add_ended_row(&EnvelopeHead { id, ..head(1, true) }, record(1));
    assert_eq!(resume.counts(), ResumeCounts { done: 1, unknown: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_failed_and_was_sent_again_is_counted_once() {
    let mut resume = ResumeIndex::default();
    resume.add_output_row(&head(1, false));
    resume.add_taken_rows(named([1]));
    assert_eq!(resume.counts(), ResumeCounts { unknown: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_could_not_be_read_and_was_mended_is_not_counted_as_failed() {
    let broken = |number| EnvelopeHead { number_stands_in: true, ..head(number, false) };
    let mended = |number| EnvelopeHead { id: RowId::Text("m".into()), ..head(number, true) };
    let done = ResumeCounts { done: 1, ..ResumeCounts::default() };
    // Stated by a later record of the ledger.
    let mut resume = ResumeIndex::default();
    resume.add_ended_row(&broken(4), record(1));
    resume.add_ended_row(&mended(4), record(2));
    assert_eq!(resume.counts(), done);
    // Stated by the output, in which it has moved as well.
    let mut resume = ResumeIndex::default();
    resume.add_output_row(&mended(5));
    resume.mark_settled_to(LedgerPosition::from_key(2));
    resume.add_ended_row(&broken(4), record(1));
    assert_eq!(resume.counts(), done);
    // Later information takes precedence.
    resume.add_ended_row(&broken(6), record(2));
    assert_eq!(resume.counts(), ResumeCounts { failed: 1, ..done });
}

#[test]
fn a_row_that_still_cannot_be_read_is_not_taken_for_one_that_had_its_number_before() {
    let mut resume = ResumeIndex::default();
    resume.add_output_row(&EnvelopeHead { number_stands_in: true, ..head(2, false) });
    resume.mark_settled_to(LedgerPosition::from_key(9));
    resume.add_ended_row(&EnvelopeHead { id: RowId::Text("b".into()), ..head(2, false) }, record(1));
    let failed = resume.row_status(&RowId::Number(2), 2);
    assert_eq!(failed, ResumeRowStatus::Failed);
}
