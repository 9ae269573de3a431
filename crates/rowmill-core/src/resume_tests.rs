use std::cell::Cell;
use std::hash::Hasher;

use rowmill_types::ToolOutput;

use super::*;
use crate::ports::LedgerPosition;

fn record(key: u64) -> RecordId {
    RecordId::new(LedgerPosition::from_key(key), 1)
}

fn head(number: u64, ok: bool) -> EnvelopeHead {
    EnvelopeHead {
        id: RowId::Number(number),
        number,
        ok,
        interrupted: false,
        stopped: false,
        outcome_unknown: false,
        stands_in: false,
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
    let mut resume = Resume::default();
    resume.saw_output(&head(1, true));
    resume.saw_output(&head(2, false));
    resume.saw_taken(named([1, 2, 3, 4, 5]));
    resume.saw_ended(&head(1, true), span);
    resume.saw_ended(&head(2, false), span);
    resume.saw_ended(&head(3, true), span);
    resume.saw_ended(&head(4, false), span);
    let standing = |number| resume.standing(&RowId::Number(number), number);
    assert_eq!(
        [1, 2, 3, 4, 5, 6].map(standing),
        [
            Standing::Done,
            Standing::Failed,
            Standing::Kept(span),
            Standing::Failed,
            Standing::Unknown,
            Standing::New
        ]
    );
}

#[test]
fn the_counts_of_all_rows_are_those_of_the_run() {
    let span = record(9);
    let mut resume = Resume::default();
    resume.saw_output(&head(1, true));
    resume.saw_output(&head(2, false));
    resume.saw_output(&EnvelopeHead { outcome_unknown: true, ..head(3, false) });
    resume.saw_taken(named([4, 5, 6, 7]));
    resume.saw_ended(&head(4, true), span);
    resume.saw_turn(&RowId::Number(6), span);
    let (tool, call, arguments) = ("t".into(), "c".into(), "{}".into());
    let started = Happening::ToolStarted { node: 0, index: 0, tool, call, arguments, turn: 1 };
    resume.saw_turn(&RowId::Number(7), span);
    resume.saw_happening(&RowId::Number(7), &started);
    let count = |numbers: std::ops::RangeInclusive<u64>| {
        let mut counts = ResumeCounts::default();
        numbers.for_each(|number| resume.count_row(&RowId::Number(number), number, &mut counts));
        counts
    };
    assert_eq!(count(1..=8), resume.counts());
    assert_eq!(count(1..=2), ResumeCounts { done: 1, failed: 1, ..ResumeCounts::default() });
}

#[test]
fn a_parked_row_is_neither_in_flight_nor_unknown_until_it_is_taken_again() {
    let parked =
        |row| ParkedRow { row, id: RowId::Text(format!("r{row}").into()), waits_for: vec!["job".into()] };
    let standing = |resume: &Resume, row: u64| resume.standing(&parked(row).id, row);
    let mut resume = Resume::default();
    resume.saw_taken(with_ids([1, 2, 3]));
    for row in [1, 2, 3] {
        resume.saw_parked(&parked(row));
    }
    assert_eq!(resume.counts(), ResumeCounts { parked: 3, ..ResumeCounts::default() });
    // Their numbers may have changed by now.
    assert_eq!([1, 9].map(|row| resume.standing(&parked(1).id, row)), [Standing::Parked; 2]);
    resume.saw_taken(with_ids([2, 3]));
    assert_eq!(standing(&resume, 2), Standing::Unknown);
    assert_eq!(resume.counts(), ResumeCounts { parked: 1, unknown: 2, ..ResumeCounts::default() });
    resume.saw_released(&with_ids([2]));
    assert_eq!(standing(&resume, 2), Standing::Parked);
    resume.saw_ended(&EnvelopeHead { id: parked(3).id, ..head(3, true) }, record(1));
    assert_eq!(standing(&resume, 3), Standing::Kept(record(1)));
    assert_eq!(resume.counts(), ResumeCounts { parked: 2, done: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_was_aborted_is_unknown_until_it_ends_otherwise() {
    let span = record(0);
    let mut resume = Resume::default();
    resume.saw_taken(named([7]));
    resume.saw_ended(&EnvelopeHead { interrupted: true, ..head(7, false) }, span);
    assert_eq!(resume.counts(), ResumeCounts { unknown: 1, ..ResumeCounts::default() });
    resume.saw_taken(named([7]));
    resume.saw_ended(&head(7, false), span);
    assert_eq!(resume.counts(), ResumeCounts { failed: 1, ..ResumeCounts::default() });
    resume.saw_ended(&head(7, true), span);
    assert_eq!(resume.counts(), ResumeCounts { done: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_a_stop_left_unfinished_is_not_unknown_and_keeps_its_turns() {
    let span = record;
    let mut resume = Resume::default();
    resume.saw_taken(named([7, 8]));
    let id = RowId::Number(7);
    resume.saw_turn(&id, span(1));
    for number in [7, 8] {
        resume.saw_ended(&EnvelopeHead { stopped: true, ..head(number, false) }, span(number));
    }
    let counts = ResumeCounts { failed: 2, with_turns: 1, ..ResumeCounts::default() };
    assert_eq!(resume.counts(), counts);
    let standing = |number| resume.standing(&RowId::Number(number), number);
    assert_eq!([7, 8].map(standing), [Standing::Unknown, Standing::Failed]);
    assert_eq!(resume.turns_of(&id), (&[span(1)][..], 0));
}

#[test]
fn a_row_with_turns_goes_on_from_them_until_it_has_ended() {
    let span = record;
    let mut resume = Resume::default();
    resume.saw_taken(named([7, 8]));
    let id = RowId::Number(7);
    resume.saw_turn(&id, span(1));
    resume.saw_turn(&id, span(2));
    // Released by a later part of the run, which had paid nothing yet.
    resume.saw_released(&named([7, 8]));
    assert_eq!(resume.standing(&RowId::Number(7), 7), Standing::Unknown);
    assert_eq!(resume.standing(&RowId::Number(8), 8), Standing::New);
    assert_eq!(resume.turns_of(&id), (&[span(1), span(2)][..], 0));
    resume.saw_ended(&EnvelopeHead { interrupted: true, ..head(7, false) }, span(3));
    resume.saw_told(&id);
    resume.saw_turn(&id, span(4));
    assert_eq!(resume.turns_of(&id), (&[span(1), span(2), span(4)][..], 2));
    resume.saw_ended(&head(7, false), span(5));
    assert_eq!(
        (resume.turns_of(&id), resume.standing(&RowId::Number(7), 7)),
        ((&[][..], 0), Standing::Failed)
    );
}

#[test]
fn a_row_whose_tool_may_have_run_is_passed_over_unless_it_is_asked_for() {
    let unknown = EnvelopeHead { outcome_unknown: true, ..head(3, false) };
    let mut left = Resume::new(false);
    left.saw_output(&unknown);
    assert_eq!(left.standing(&RowId::Number(3), 3), Standing::Done);
    assert_eq!(left.counts(), ResumeCounts { undecided: 1, ..ResumeCounts::default() });
    let mut again = Resume::new(true);
    again.saw_output(&unknown);
    assert_eq!(again.standing(&RowId::Number(3), 3), Standing::Failed);
    again.saw_output(&head(3, true));
    assert_eq!(again.counts(), ResumeCounts { done: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_is_passed_over_is_published_from_the_ledger_if_the_output_lacks_it() {
    let unknown = |number| EnvelopeHead { outcome_unknown: true, ..head(number, false) };
    let span = record;
    let mut resume = Resume::new(false);
    resume.saw_output(&unknown(1));
    resume.saw_ended(&unknown(1), span(1));
    resume.saw_ended(&unknown(2), span(2));
    resume.saw_ended(&unknown(2), span(3));
    let standing = |number| resume.standing(&RowId::Number(number), number);
    assert_eq!([1, 2].map(standing), [Standing::Done, Standing::Kept(span(3))]);
}

#[test]
fn a_row_whose_tool_was_running_is_not_counted_among_those_that_are_sent_again() {
    let started = |index| Happening::ToolStarted {
        node: 0,
        index,
        tool: "book".into(),
        call: "c".into(),
        arguments: "{}".into(),
        turn: 1,
    };
    let (output, note) = (ToolOutput::of_text("done"), None);
    let ended = Happening::ToolEnded { node: 0, index: 0, output, note };
    let mut resume = Resume::default();
    resume.saw_taken(named([1, 2, 3]));
    for (number, happenings) in
        [(1, vec![started(0), ended.clone()]), (2, vec![started(0), started(1), ended])]
    {
        for happening in happenings {
            resume.saw_turn(&RowId::Number(number), record(1));
            resume.saw_happening(&RowId::Number(number), &happening);
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
    let mut resume = Resume::default();
    for number in 0..ROWS {
        resume.saw_taken(named([number]));
        resume.saw_turn(&RowId::Number(number), record(number));
        resume.saw_ended(&head(number, true), record(number));
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
    let mut resume = Resume::default();
    resume.saw_taken(vec![named(1, "a"), named(2, "b")]);
    // The run was killed; then rows moved, and others were sent under the same numbers.
    resume.saw_taken(vec![named(1, "c"), named(2, "d"), named(3, "b")]);
    assert_eq!(resume.counts(), ResumeCounts { unknown: 4, ..ResumeCounts::default() });
    resume.saw_ended(&EnvelopeHead { id: id("b"), ..head(3, true) }, record(1));
    resume.saw_released(&[named(1, "c")]);
    let standing = |name: &str, number| resume.standing(&id(name), number);
    assert_eq!(resume.counts(), ResumeCounts { done: 1, unknown: 2, ..ResumeCounts::default() });
    assert_eq!([standing("a", 9), standing("d", 8)], [Standing::Unknown; 2]);
    assert_eq!([standing("c", 1), standing("x", 2)], [Standing::New; 2]);
}

#[test]
fn rows_in_flight_of_a_ledger_without_ids_are_known_by_their_numbers() {
    let id = RowId::Text("a".into());
    let mut resume = Resume::default();
    resume.saw_taken(named([1, 2]));
    assert_eq!(resume.standing(&id, 1), Standing::Unknown);
    resume.saw_ended(&EnvelopeHead { id, ..head(1, true) }, record(1));
    assert_eq!(resume.counts(), ResumeCounts { done: 1, unknown: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_failed_and_was_sent_again_is_counted_once() {
    let mut resume = Resume::default();
    resume.saw_output(&head(1, false));
    resume.saw_taken(named([1]));
    assert_eq!(resume.counts(), ResumeCounts { unknown: 1, ..ResumeCounts::default() });
}

#[test]
fn a_row_that_could_not_be_read_and_was_mended_is_not_counted_as_failed() {
    let broken = |number| EnvelopeHead { stands_in: true, ..head(number, false) };
    let mended = |number| EnvelopeHead { id: RowId::Text("m".into()), ..head(number, true) };
    let done = ResumeCounts { done: 1, ..ResumeCounts::default() };
    // Stated by a later record of the ledger.
    let mut resume = Resume::default();
    resume.saw_ended(&broken(4), record(1));
    resume.saw_ended(&mended(4), record(2));
    assert_eq!(resume.counts(), done);
    // Stated by the output, in which it has moved as well.
    let mut resume = Resume::default();
    resume.saw_output(&mended(5));
    resume.saw_settled_to(LedgerPosition::from_key(2));
    resume.saw_ended(&broken(4), record(1));
    assert_eq!(resume.counts(), done);
    // Later information takes precedence.
    resume.saw_ended(&broken(6), record(2));
    assert_eq!(resume.counts(), ResumeCounts { failed: 1, ..done });
}

#[test]
fn a_row_that_still_cannot_be_read_is_not_taken_for_one_that_had_its_number_before() {
    let mut resume = Resume::default();
    resume.saw_output(&EnvelopeHead { stands_in: true, ..head(2, false) });
    resume.saw_settled_to(LedgerPosition::from_key(9));
    resume.saw_ended(&EnvelopeHead { id: RowId::Text("b".into()), ..head(2, false) }, record(1));
    let failed = resume.standing(&RowId::Number(2), 2);
    assert_eq!(failed, Standing::Failed);
}
