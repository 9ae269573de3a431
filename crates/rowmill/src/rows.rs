//! Looks at the rows before the first call: counts them, and checks their ids.

use rowmill_core::ports::{Dataset, Room, RowSource};
use rowmill_core::select::{Choice, IdRule, IdSet, Selection, Selector, duplicate_problem};
use rowmill_types::{Problem, RowId, SourceRow};

/// How many rows one read may bring.
const ROOM: Room = Room { rows: 1024, bytes: 1 << 20 };

/// How many candidates there are.
pub(crate) fn count(dataset: &dyn Dataset) -> Result<u64, Problem> {
    match dataset.count()? {
        Some(rows) => Ok(rows),
        None => dataset.open()?.skip(u64::MAX),
    }
}

/// Checks that every selected row has a valid id of its own. A missing field is no
/// mistake here: it is that row's failure later.
pub(crate) fn check_ids(
    dataset: &dyn Dataset,
    ids: &IdRule,
    selection: &Selection,
    candidates: Option<u64>,
) -> Result<(), Problem> {
    let mut seen = IdSet::default();
    each_selected(dataset, selection, candidates, |row| {
        let Ok(row) = row else { return Ok(true) };
        match ids.id_of(row) {
            Ok(id) if seen.insert(&id) => Ok(true),
            Ok(id) => {
                let first = first_with(dataset, ids, selection, candidates, &id)?;
                let field = ids.field.as_deref().unwrap_or_default();
                Err(duplicate_problem(field, &id, first, row.number()))
            }
            Err(fault) => fault.problem(row.number()).map_or(Ok(true), Err),
        }
    })
}

/// The number of the first selected row with this id.
fn first_with(
    dataset: &dyn Dataset,
    ids: &IdRule,
    selection: &Selection,
    candidates: Option<u64>,
    wanted: &RowId,
) -> Result<u64, Problem> {
    let mut found = 0;
    each_selected(dataset, selection, candidates, |row| {
        if let Ok(row) = row
            && ids.id_of(row).as_ref() == Ok(wanted)
        {
            found = row.number();
            return Ok(false);
        }
        Ok(true)
    })?;
    Ok(found)
}

fn each_selected(
    dataset: &dyn Dataset,
    selection: &Selection,
    candidates: Option<u64>,
    mut saw: impl FnMut(&SourceRow) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    let mut selector = Selector::new(selection, candidates)?;
    each(dataset.open()?, |row| match selector.decide() {
        Choice::Take => saw(row),
        Choice::Pass => Ok(true),
        Choice::End => Ok(false),
    })
}

/// Gives rows to `saw` until it says `false` or the input ends.
fn each(
    mut source: Box<dyn RowSource>,
    mut saw: impl FnMut(&SourceRow) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    let mut rows = Vec::new();
    loop {
        let more = source.read(&mut rows, ROOM)?;
        for row in rows.drain(..) {
            if !saw(&row)? {
                return Ok(());
            }
        }
        if !more {
            return Ok(());
        }
    }
}
