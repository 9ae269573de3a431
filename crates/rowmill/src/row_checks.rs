//! Inspects the rows before the first call: counts them, and checks their ids.

use std::ops::ControlFlow;

use rowmill_core::ports::{Dataset, ReadLimit, RequestedDatasetPart, RowSource};
use rowmill_core::resume::{ResumeCounts, ResumeIndex};
use rowmill_core::select::{
    IdRule, IdSet, InputRowRanges, RowChoice, RowSelection, RowSelector, duplicate_id_problem,
};
use rowmill_data::read_on_second_thread;
use rowmill_types::{Problem, RowId, RowReadResult};

/// The maximum size of one read.
pub(crate) const READ_LIMIT: ReadLimit = ReadLimit { rows: 256, bytes: 1 << 18 };

/// The maximum number of rows that are counted to show what a resume starts with.
const MOST_COUNTED: u64 = 1_000_000;

/// The number of candidate rows.
pub(crate) fn count_rows(dataset: &dyn Dataset) -> Result<u64, Problem> {
    match dataset.count()? {
        Some(rows) => Ok(rows),
        None => dataset.open()?.skip(u64::MAX),
    }
}

/// Checks that every selected row has a valid and unique id, and records where the row is. A missing
/// field is not a mistake here: it is that row's failure later.
pub(crate) fn check_ids(
    dataset: &dyn Dataset,
    ids: &IdRule,
    selection: &RowSelection,
    candidates: Option<u64>,
) -> Result<InputRowRanges, Problem> {
    let mut seen = IdSet::default();
    let mut stretches = InputRowRanges::default();
    each_selected(dataset, ids, selection, candidates, |row| {
        let row = match row {
            Ok(row) => row,
            Err(bad) => {
                stretches.add_row(None, bad.number);
                return Ok(true);
            }
        };
        let id = ids.row_id(row);
        stretches.add_row(id.as_ref().ok(), row.number());
        match id {
            Ok(id) if seen.insert(&id) => Ok(true),
            Ok(id) => match first_with(dataset, ids, selection, candidates, &id)? {
                // Another id with the same digest.
                first if first == row.number() => Ok(true),
                first => {
                    let field = ids.field.as_deref().unwrap_or_default();
                    Err(duplicate_id_problem(field, &id, first, row.number()))
                }
            },
            Err(fault) => fault.problem(row.number()).map_or(Ok(true), Err),
        }
    })?;
    Ok(stretches)
}

/// The counts of the selected rows in an earlier run; `None` if there are too many rows to count before
/// the run continues.
pub(crate) fn selected_counts(
    dataset: &dyn Dataset,
    ids: &IdRule,
    selection: &RowSelection,
    resume: &ResumeIndex,
) -> Result<Option<ResumeCounts>, Problem> {
    let candidates = if selection.sample.is_some() { Some(count_rows(dataset)?) } else { None };
    let (mut counts, mut seen) = (ResumeCounts::default(), 0_u64);
    each_selected(dataset, ids, selection, candidates, |row| {
        let (number, id) = match row {
            Ok(row) => (row.number(), ids.row_id(row).unwrap_or(RowId::Number(row.number()))),
            Err(bad) => (bad.number, RowId::Number(bad.number)),
        };
        resume.add_row_to_counts(&id, number, &mut counts);
        seen += 1;
        Ok(seen < MOST_COUNTED)
    })?;
    Ok((seen < MOST_COUNTED).then_some(counts))
}

/// The number of the first selected row with this id.
fn first_with(
    dataset: &dyn Dataset,
    ids: &IdRule,
    selection: &RowSelection,
    candidates: Option<u64>,
    wanted: &RowId,
) -> Result<u64, Problem> {
    let mut found = 0;
    each_selected(dataset, ids, selection, candidates, |row| {
        if let Ok(row) = row
            && ids.row_id(row).as_ref() == Ok(wanted)
        {
            found = row.number();
            return Ok(false);
        }
        Ok(true)
    })?;
    Ok(found)
}

/// Passes selected rows to `saw` until it returns `false`. Only the id is read, if the dataset supports
/// that, and skipped rows are not read at all.
fn each_selected(
    dataset: &dyn Dataset,
    ids: &IdRule,
    selection: &RowSelection,
    candidates: Option<u64>,
    mut saw: impl FnMut(&RowReadResult) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    let selector = RowSelector::new(selection, candidates)?;
    let columns = ids.field.as_deref().map(|field| vec![field.to_owned()]);
    let source = dataset.open_part(&RequestedDatasetPart { columns, conditions: Vec::new() })?;
    let mut selected = SelectedRowReader { source, selector, ended: false };
    read_on_second_thread(
        || selected.next_batch(),
        |rows| {
            for row in &rows {
                if !saw(row)? {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )
}

/// The selected rows of a source.
struct SelectedRowReader {
    source: Box<dyn RowSource>,
    selector: RowSelector,
    ended: bool,
}

impl SelectedRowReader {
    /// The next selected rows; `None` after the last.
    fn next_batch(&mut self) -> Result<Option<Vec<RowReadResult>>, Problem> {
        if self.ended || self.selector.is_finished() {
            return Ok(None);
        }
        let passed = self.source.skip(self.selector.certain_skips())?;
        self.selector.skip_candidates(passed);
        let mut rows = Vec::new();
        self.ended = !self.source.read(&mut rows, READ_LIMIT)?;
        rows.retain(|_| self.selector.decide() == RowChoice::Take);
        Ok(Some(rows))
    }
}
