//! Rows that an earlier run has finished.

use std::sync::Arc;

use rowmill_core::record::EnvelopeHead;
use rowmill_core::resume::ResumeIndex;
use rowmill_core::select::{IdRule, InputRowRanges, RowSelection, RowSelector};
use rowmill_engine::execute_run;
use rowmill_testkit::{FakeDataset, FakeModel};
use rowmill_types::RowId;

use crate::support::Bench;

/// The rows 1 to `rows`, with their numbers as ids; the output has those that `is_done` selects.
fn resumed(rows: u64, is_done: impl Fn(u64) -> bool) -> ResumeIndex {
    let id = |number: u64| RowId::Text(number.to_string().into());
    let (mut resume, mut input) = (ResumeIndex::default(), InputRowRanges::default());
    for number in 1..=rows {
        input.add_row(Some(&id(number)), number);
        if is_done(number) {
            resume.add_output_row(&EnvelopeHead::new(id(number), number, true, ""));
        }
    }
    resume.skip_unchanged_ranges(&input);
    resume
}

#[tokio::test(start_paused = true)]
async fn rows_that_are_known_to_be_done_are_not_read_and_the_others_are_sent() {
    const ROWS: u64 = 5_000;
    let is_done = |number: u64| !matches!(number, 2_500 | 4_999);
    // If all rows of a range are done, its current content in the input is not examined.
    let texts = (1..=ROWS).map(|number| match number {
        1..2_000 | 3_100..4_000 => format!("{{\"p\":\"new {number}\"}}"),
        _ => format!("{{\"p\":\"{number}\"}}"),
    });
    let model = Arc::new(FakeModel::default());
    let mut bench = Bench::over(FakeDataset::from_texts(texts), model.clone());
    bench.plan.ids = IdRule { field: Some("p".into()), ..IdRule::default() };
    bench.plan.resume = resumed(ROWS, is_done);
    let places = bench.plan.resume.ok_row_digest();
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(watched.numbers(), [2_500, 4_999]);
    assert_eq!(
        (end.tally.input_rows, end.tally.selected_rows, end.tally.skipped_rows),
        (ROWS, ROWS, ROWS - 2)
    );
    assert_eq!(end.skipped, places);
}

#[tokio::test(start_paused = true)]
async fn a_limit_ends_among_rows_that_need_not_be_read() {
    let texts = (1..=5_000).map(|number| format!("{{\"p\":\"{number}\"}}"));
    let mut bench = Bench::over(FakeDataset::from_texts(texts), Arc::new(FakeModel::default()));
    bench.plan.ids = IdRule { field: Some("p".into()), ..IdRule::default() };
    bench.plan.resume = resumed(5_000, |number| number != 7);
    bench.plan.selector =
        RowSelector::new(&RowSelection { limit: Some(3_000), ..RowSelection::default() }, None).unwrap();
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((watched.numbers(), end.tally.selected_rows, end.tally.skipped_rows), (vec![7], 3_000, 2_999));
}
