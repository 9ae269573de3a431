//! The contract of reading rows.

use rowmill_core::ports::{Dataset, InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{Row, RowReadResult};

use super::check_suite::{CheckResult, CheckSuite, ensure};
use super::dataset::{ReadExtent, number, open};

/// Room for a few rows.
const FEW: ReadLimit = ReadLimit { rows: 7, bytes: usize::MAX };
/// Room for one row.
const ONE: ReadLimit = ReadLimit { rows: 1, bytes: usize::MAX };
/// Room for one row, only because a row has more text than this.
const ONE_BYTE: ReadLimit = ReadLimit { rows: 1000, bytes: 1 };
/// Room for everything.
const ALL: ReadLimit = ReadLimit { rows: usize::MAX, bytes: usize::MAX };

/// Reads everything in small portions, and records the reported positions.
pub(super) fn everything(
    source: &mut dyn RowSource,
) -> Result<(Vec<RowReadResult>, Vec<InputReadProgress>), String> {
    let mut rows = Vec::new();
    let mut positions = vec![source.position()];
    while append(source, &mut rows, FEW)? {
        positions.push(source.position());
    }
    positions.push(source.position());
    Ok((rows, positions))
}

/// Checks that positions never decrease, and that the read ends where it reported.
pub(super) fn comes_to_an_end(positions: &[InputReadProgress], reach: ReadExtent) -> CheckResult {
    for pair in positions.windows(2) {
        let [before, now] = pair else { continue };
        ensure(now.read >= before.read, || format!("it goes back from {} to {}", before.read, now.read))?;
    }
    let end = positions.last().copied().unwrap_or_default();
    let total = end.total.unwrap_or(end.read);
    let is_there = match reach {
        ReadExtent::Everything => end.read == total,
        ReadExtent::WhatIsNeeded => end.read <= total,
    };
    ensure(is_there, || format!("it is {} of {total} at the end", end.read))
}

/// Reads once and checks the result against the room; returns `false` at the end.
fn append(
    source: &mut dyn RowSource,
    rows: &mut Vec<RowReadResult>,
    room: ReadLimit,
) -> Result<bool, String> {
    let before = rows.len();
    let last = rows.last().cloned();
    let more =
        source.read(rows, room).map_err(|problem| format!("it cannot be read: {}", problem.message))?;
    ensure(rows.len() >= before && rows.get(..before).and_then(<[_]>::last) == last.as_ref(), || {
        "a read changed the rows that were in the batch before it".to_owned()
    })?;
    let new = rows.get(before..).unwrap_or_default();
    ensure(new.len() <= room.rows, || {
        format!("a read with room for {} rows appended {}", room.rows, new.len())
    })?;
    ensure(!(more && new.is_empty()), || {
        "a read appended no row and reported that there is more".to_owned()
    })?;
    let but_last = new.split_last().map_or(&[][..], |(_, rest)| rest);
    let bytes: usize = but_last.iter().flatten().map(|row| row.json_text().len()).sum();
    ensure(but_last.iter().all(Result::is_err) || bytes < room.bytes, || {
        format!("a read with room for {} bytes went on after {bytes}", room.bytes)
    })?;
    Ok(more)
}

/// Checks that a read returns no rows after its end, every time.
pub(super) fn ended(source: &mut dyn RowSource) -> CheckResult {
    for _ in 0..2 {
        let mut rows = Vec::new();
        let more = source
            .read(&mut rows, FEW)
            .map_err(|problem| format!("the end is a problem: {}", problem.message))?;
        ensure(rows.is_empty(), || {
            let row = rows.first().map_or(0, number);
            format!("a read reported that the input has ended, and then row {row} came")
        })?;
        ensure(!more, || "a read after the end reported that there is more".to_owned())?;
    }
    Ok(())
}

/// Checks a dataset that can be read again.
pub(super) fn check(suite: &mut CheckSuite, dataset: &dyn Dataset, rows: &[RowReadResult]) {
    let portions = [
        ("one row at a time", ONE),
        ("a few rows at a time", ReadLimit { rows: 3, bytes: usize::MAX }),
        ("one byte at a time", ONE_BYTE),
        ("everything at once", ALL),
    ];
    for (what, room) in portions {
        suite.check(&format!("reading {what}"), || {
            let mut source = open(dataset)?;
            same(rows, &read_rest(&mut *source, room)?)?;
            ended(&mut *source)
        });
    }
    suite.check("two reads at the same time", || {
        let (mut left, mut right) = (open(dataset)?, open(dataset)?);
        let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
        loop {
            let more = append(&mut *left, &mut of_left, ONE)?;
            if !append(&mut *right, &mut of_right, ONE)? && !more {
                break;
            }
        }
        same(rows, &of_left)?;
        same(rows, &of_right)
    });
    suite.check("a read that is given up", || {
        append(&mut *open(dataset)?, &mut Vec::new(), ONE)?;
        same(rows, &read_rest(&mut *open(dataset)?, FEW)?)
    });
    let all = rows.len() as u64;
    for count in [0, 1, all / 2, all.saturating_sub(1), all] {
        suite.check(&format!("passing over {count} of {all} rows"), || passes(dataset, rows, count.min(all)));
    }
    suite.check("passing over more rows than there are", || passes_the_end(dataset, all));
}

/// Checks that skipping rows, reading one and skipping more gives the same as reading all of them.
fn passes(dataset: &dyn Dataset, rows: &[RowReadResult], count: u64) -> CheckResult {
    let at = usize::try_from(count).unwrap_or(usize::MAX);
    let mut source = open(dataset)?;
    skip(&mut *source, count, count)?;
    let mut read = Vec::new();
    append(&mut *source, &mut read, ONE)?;
    let left = rows.get(at..).unwrap_or_default();
    let (one, left) = left.split_at(left.len().min(1));
    same(one, &read)?;
    let (over, left) = left.split_at(left.len().min(2));
    skip(&mut *source, over.len() as u64, over.len() as u64)?;
    same(left, &read_rest(&mut *source, FEW)?)
}

fn passes_the_end(dataset: &dyn Dataset, all: u64) -> CheckResult {
    for too_many in [all + 5, u64::MAX] {
        let mut source = open(dataset)?;
        skip(&mut *source, too_many, all)?;
        skip(&mut *source, 3, 0)?;
        ended(&mut *source)?;
    }
    Ok(())
}

fn skip(source: &mut dyn RowSource, count: u64, expected: u64) -> CheckResult {
    let passed = source.skip(count).map_err(|problem| problem.to_string())?;
    ensure(passed == expected, || format!("`skip({count})` says {passed} instead of {expected}"))
}

/// The remaining rows of a read.
pub(super) fn read_rest(source: &mut dyn RowSource, room: ReadLimit) -> Result<Vec<RowReadResult>, String> {
    let mut rows = Vec::new();
    while append(source, &mut rows, room)? {}
    Ok(rows)
}

/// The remaining rows of a read, in portions of arbitrary size.
pub(super) fn read_all(source: &mut dyn RowSource) -> Result<Vec<RowReadResult>, String> {
    read_rest(source, FEW)
}

fn same(expected: &[RowReadResult], read: &[RowReadResult]) -> CheckResult {
    let differs = |(left, right): &(&RowReadResult, &RowReadResult)| left != right;
    if let Some((left, right)) = expected.iter().zip(read).find(differs) {
        return Err(format!("{} came instead of {}", shown(right), shown(left)));
    }
    let (left, right) = (expected.len(), read.len());
    ensure(left == right, || format!("{right} rows came instead of {left}"))
}

fn shown(row: &RowReadResult) -> String {
    match row {
        Ok(row) => format!("row {} `{}`", row.number(), Row::json_text(row)),
        Err(bad) => format!("the bad row {} ({})", bad.number, bad.message),
    }
}
