//! Reorders an output by an input whose rows moved.
//!
//! Rows are identified by their ids. Their envelopes have the numbers from when they were answered, which
//! change once rows are inserted, removed or sorted.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::Path;

use rowmill_core::record::EnvelopeHead;
use rowmill_types::settings::{INPUT, OVERWRITE};
use rowmill_types::{Problem, ProblemCode, RowId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::claim::{create_replacement, write_problem};
use super::external_sort::{ExternalSorter, OffsetLineReader, SortedEntries};
use super::lines::{OutputLine, OutputLines, read_problem};
use super::link_target;
use super::settle::finish_replacement;

/// What to do with the envelopes of rows that are no longer in the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemovedRows {
    /// Keep them, after all others.
    #[default]
    Keep,
    /// Drop them.
    Drop,
}

/// Iterates over the rows of an input: their numbers and ids.
pub type NextInputIdFn<'a> = Box<dyn FnMut() -> Result<Option<(u64, RowId)>, Problem> + 'a>;

/// The result of reordering an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReorderReport {
    /// Rows of the input that have an envelope.
    pub found_rows: u64,
    /// Those of them whose number changed.
    pub moved_rows: u64,
    /// Rows that are no longer in the input.
    pub removed_rows: u64,
}

/// Reorders a settled output by the input and updates its row numbers. Envelopes of removed rows come last,
/// numbered after the last row, or are left out.
///
/// `open` starts reading the input; it is called twice if rows moved. Data that does not fit into memory is
/// sorted in `folder`. The new file is complete on disk before it replaces the old one.
///
/// # Errors
///
/// A file cannot be read or written; the old file is then unchanged.
pub fn order_by_input(
    path: &Path,
    open: &dyn Fn() -> Result<NextInputIdFn<'static>, Problem>,
    removed: RemovedRows,
    folder: &Path,
) -> Result<ReorderReport, Problem> {
    let path = &link_target(path);
    if let Some(found_rows) = rows_in_place(path, &mut open()?)? {
        return Ok(ReorderReport { found_rows, ..ReorderReport::default() });
    }
    let digests = IdDigests(RandomState::new().hash_one(folder));
    let mut input = ExternalSorter::new(folder);
    let (mut rows, mut last) = (open()?, 0);
    while let Some((number, id)) = rows()? {
        last = number;
        input.push(digests.entry(&id, number))?;
    }
    drop(rows);
    let mut output = ExternalSorter::new(folder);
    each(path, |head, offset| output.push(digests.entry(&head.id, offset)))?;
    let places = places(input.finish()?, output.finish()?, folder)?;
    rewrite(path, places, last, removed)
}

/// The number of rows with envelopes, if every envelope has the current number of its row.
fn rows_in_place(path: &Path, rows: &mut NextInputIdFn<'_>) -> Result<Option<u64>, Problem> {
    let mut lines = OutputLines::open(path, 0..u64::MAX, 1 << 18)?;
    let (mut row, mut found) = (rows()?, 0);
    while let OutputLine::Envelope(head) = lines.next()? {
        while row.as_ref().is_some_and(|(number, _)| *number < head.number) {
            row = rows()?;
        }
        if row.as_ref().is_none_or(|(number, id)| *number != head.number || *id != head.id) {
            return Ok(None);
        }
        found += 1;
    }
    Ok(Some(found))
}

/// Hashes ids to keys. The hash differs from one use to the next, so that no input can be crafted whose ids
/// collide.
#[derive(Clone, Copy)]
struct IdDigests(u64);

impl IdDigests {
    fn entry(self, id: &RowId, value: u64) -> [u64; 3] {
        let digest = match id {
            RowId::Number(number) => return [0, *number, value],
            RowId::Text(text) => xxh3_128_with_seed(text.as_bytes(), self.0),
        };
        // A number is its own key, which no text has.
        [(digest >> 64) as u64 | 1, digest as u64, value]
    }
}

fn each(path: &Path, mut saw: impl FnMut(EnvelopeHead, u64) -> Result<(), Problem>) -> Result<(), Problem> {
    let mut lines = OutputLines::open(path, 0..u64::MAX, 1 << 18)?;
    while let OutputLine::Envelope(head) = lines.next()? {
        saw(head, lines.offset)?;
    }
    Ok(())
}

/// The number of a row that is no longer in the input.
const GONE: u64 = u64::MAX;

/// The envelopes in their new order: the number of the row, and the offset of the envelope.
fn places(
    mut input: SortedEntries,
    mut output: SortedEntries,
    folder: &Path,
) -> Result<SortedEntries, Problem> {
    let mut places = ExternalSorter::new(folder);
    let mut row = input.next()?;
    while let Some([first, second, offset]) = output.next()? {
        let key = [first, second];
        while row.is_some_and(|[first, second, _]| [first, second] < key) {
            row = input.next()?;
        }
        match row {
            Some([first, second, number]) if [first, second] == key => places.push([number, offset, 0])?,
            // An envelope without an id belonged to an unreadable row, which has moved and has another
            // envelope.
            _ if first == 0 => {}
            _ => places.push([GONE, offset, 0])?,
        }
    }
    places.finish()
}

fn rewrite(
    path: &Path,
    mut places: SortedEntries,
    last: u64,
    removed: RemovedRows,
) -> Result<ReorderReport, Problem> {
    let mut done = ReorderReport::default();
    let file = File::open(path).map_err(|error| read_problem(path, &error))?;
    let mut reader = OffsetLineReader::new(file);
    let (beside, file) = create_replacement(path)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let (mut line, mut renumbered) = (Vec::new(), Vec::new());
    while let Some([place, offset, _]) = places.next()? {
        if place == GONE && removed == RemovedRows::Drop && done.found_rows == 0 {
            return Err(nothing_left(path));
        }
        let number = match place {
            GONE => {
                done.removed_rows += 1;
                if removed == RemovedRows::Drop {
                    continue;
                }
                last + done.removed_rows
            }
            number => {
                done.found_rows += 1;
                number
            }
        };
        reader.read(offset, &mut line).map_err(|error| read_problem(path, &error))?;
        renumbered.clear();
        let before = write_with_number(&line, number, &mut renumbered).map_err(|error| {
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
            read_problem(path, &error)
        })?;
        if place != GONE && before != number {
            done.moved_rows += 1;
        }
        out.write_all(&renumbered).map_err(|error| write_problem(&beside, &error))?;
    }
    finish_replacement(out, &beside, path)?;
    Ok(done)
}

/// Nobody wants an output without rows: more likely it is the wrong input.
fn nothing_left(path: &Path) -> Problem {
    let message = format!(
        "none of the rows of `{}` is still in the input, so all of them would be dropped",
        path.display()
    );
    Problem::new(ProblemCode::OutputUnusable, message)
        .hint(format!("check {INPUT}; use {OVERWRITE} to start over with it; nothing was dropped"))
}

#[derive(Deserialize)]
struct EnvelopeWithNumber<'a> {
    #[serde(borrow)]
    row_number: &'a RawValue,
}

/// Appends an envelope with a new row number; returns the old one.
fn write_with_number(envelope: &[u8], number: u64, out: &mut Vec<u8>) -> Result<u64, serde_json::Error> {
    let old = serde_json::from_slice::<EnvelopeWithNumber<'_>>(envelope)?.row_number.get();
    // The value is a slice of the envelope, so its address gives its offset.
    let start = old.as_ptr().addr() - envelope.as_ptr().addr();
    let (before, rest) = envelope.split_at(start);
    out.extend_from_slice(before);
    out.extend_from_slice(number.to_string().as_bytes());
    out.extend_from_slice(rest.get(old.len()..).unwrap_or_default());
    serde_json::from_str(old)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn line(id: &str, number: u64) -> String {
        format!("{{\"id\":{id},\"row_number\":{number},\"ok\":true,\"result\":{{\"row_number\":7}}}}\n")
    }

    /// Reorders envelopes by an input; `None` in the input is a row without an id.
    fn ordered(
        envelopes: &[(&str, u64)],
        input: &[Option<&str>],
        removed: RemovedRows,
    ) -> (ReorderReport, String) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("out.jsonl");
        fs::write(&path, envelopes.iter().map(|(id, number)| line(id, *number)).collect::<String>()).unwrap();
        let ids: Vec<(u64, RowId)> = (1..)
            .zip(input)
            .map(|(number, id)| (number, id.map_or(RowId::Number(number), |id| RowId::Text(id.into()))))
            .collect();
        let open = || -> Result<NextInputIdFn<'static>, Problem> {
            let mut rows = ids.clone().into_iter();
            Ok(Box::new(move || Ok(rows.next())))
        };
        let done = order_by_input(&path, &open, removed, home.path()).unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no litter");
        (done, fs::read_to_string(&path).unwrap())
    }

    fn lines(envelopes: &[(&str, u64)]) -> String {
        envelopes.iter().map(|(id, number)| line(id, *number)).collect()
    }

    #[test]
    fn an_output_whose_rows_are_where_they_were_is_left_alone() {
        let envelopes = [("\"a\"", 1), ("2", 2), ("\"c\"", 3)];
        let (done, text) = ordered(&envelopes, &[Some("a"), None, Some("c"), Some("new")], RemovedRows::Drop);
        assert_eq!((done, text), (ReorderReport { found_rows: 3, ..done }, lines(&envelopes)));
        assert_eq!((done.moved_rows, done.removed_rows), (0, 0));
    }

    #[test]
    fn rows_that_moved_take_their_new_places_and_numbers() {
        let input = [Some("x"), Some("c"), Some("b"), Some("y"), Some("a")];
        let (done, text) = ordered(&[("\"a\"", 1), ("\"b\"", 3), ("\"c\"", 3)], &input, RemovedRows::Keep);
        assert_eq!(text, lines(&[("\"c\"", 2), ("\"b\"", 3), ("\"a\"", 5)]));
        assert_eq!(done, ReorderReport { found_rows: 3, moved_rows: 2, removed_rows: 0 });
    }

    #[test]
    fn rows_that_are_gone_come_last_or_are_left_out() {
        let envelopes = [("\"gone\"", 1), ("\"a\"", 2), ("\"too\"", 3)];
        let input = [Some("a"), Some("b")];
        let (done, text) = ordered(&envelopes, &input, RemovedRows::Keep);
        assert_eq!(text, lines(&[("\"a\"", 1), ("\"gone\"", 3), ("\"too\"", 4)]));
        assert_eq!(done.removed_rows, 2);
        let (done, text) = ordered(&envelopes, &input, RemovedRows::Drop);
        assert_eq!((text, done.removed_rows), (lines(&[("\"a\"", 1)]), 2));
    }

    #[test]
    fn an_envelope_without_an_id_goes_when_another_row_is_in_its_place() {
        let (done, text) = ordered(&[("\"a\"", 1), ("2", 2)], &[None, Some("a")], RemovedRows::Keep);
        assert_eq!((text, done.removed_rows), (lines(&[("\"a\"", 2)]), 0));
    }
}
