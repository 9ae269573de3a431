//! The contract of datasets.

use std::collections::HashSet;

use rowmill_core::ports::{ColumnKind, Dataset, DatasetColumn};
use rowmill_types::{Row, RowReadResult};

use super::check_suite::{CheckResult, CheckSuite, ensure};
use super::{parts, reading};

/// The facts about a dataset that only its author knows. Absent facts are not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetFacts {
    /// The number of rows, including bad ones.
    pub rows: Option<usize>,
    /// The numbers of the bad rows, in order.
    pub bad: Option<Vec<u64>>,
    /// How rows are numbered.
    pub numbering: RowNumbering,
    /// Where a read ends.
    pub reach: ReadExtent,
}

/// Where a read ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReadExtent {
    /// At the end of the input: the last position is the total, if a total is reported.
    #[default]
    Everything,
    /// Once nothing more is needed, as in a query with `LIMIT`.
    WhatIsNeeded,
}

/// How rows are numbered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowNumbering {
    /// Increasing numbers, possibly with gaps, for example if rows are numbered by their lines and some lines
    /// are blank. The port requires no more than this.
    #[default]
    Growing,
    /// From 1, without gaps.
    FromOne,
}

/// Checks `dataset` against the contract of the port; returns every violation, nothing if it satisfies the
/// contract.
///
/// Row numbers increase. A read appends at least one row and no more than fit, leaves the earlier rows of the
/// batch unchanged, and returns `false` only at the end, and then every time. Skipping rows has the same
/// result as reading them. A second read gives the same rows, even while the first one is in progress, and a
/// read of a part gives all rows that belong to it, with the numbers of the whole. What the dataset reports
/// about itself (how many rows, which columns, how far a read has come, which field is the id) is correct. A
/// bad row keeps its position, and reading continues after it.
///
/// A dataset that is not `rereadable` is opened once, and checks that need a second read are left out. All
/// rows are held in memory, so use a small input; one with bad rows, text that is not ASCII and fields that
/// some rows lack finds the most.
///
/// ```
/// use rowmill_core::ports::{Dataset, InputIdentity, InputReadProgress, ReadLimit, RowSource};
/// use rowmill_testkit::conformance::{DatasetFacts, RowNumbering, check_dataset};
/// use rowmill_types::{Problem, Row, RowReadResult};
///
/// /// The squares of the first numbers.
/// #[derive(Debug)]
/// struct Squares(u64);
///
/// impl Dataset for Squares {
///     fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
///         Ok(Box::new(Read { at: 0, end: self.0 }))
///     }
///
///     fn is_rereadable(&self) -> bool {
///         true
///     }
///
///     fn identity(&self) -> Result<InputIdentity, Problem> {
///         Ok(InputIdentity { path: format!("squares:{}", self.0), size: None, probe: None })
///     }
/// }
///
/// struct Read {
///     at: u64,
///     end: u64,
/// }
///
/// impl RowSource for Read {
///     fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
///         let (mut rows, mut bytes) = (0, 0);
///         while self.at < self.end {
///             self.at += 1;
///             let text = format!("{{\"square\": {}}}", self.at * self.at);
///             bytes += text.len();
///             rows += 1;
///             batch.push(Row::parse(self.at, text));
///             if rows >= room.rows || bytes >= room.bytes {
///                 return Ok(true);
///             }
///         }
///         Ok(false)
///     }
///
///     fn position(&self) -> InputReadProgress {
///         InputReadProgress { read: self.at, total: Some(self.end) }
///     }
/// }
///
/// let facts = DatasetFacts {
///     rows: Some(20),
///     bad: Some(vec![]),
///     numbering: RowNumbering::FromOne,
///     ..DatasetFacts::default()
/// };
/// assert_eq!(check_dataset(&Squares(20), &facts), Vec::<String>::new());
/// ```
pub fn check_dataset(dataset: &dyn Dataset, facts: &DatasetFacts) -> Vec<String> {
    let mut suite = CheckSuite::default();
    suite.check("what the input is", || same_identity(dataset));
    suite.check("counting rows before they are read", || {
        dataset.count().map(drop).map_err(|problem| problem.to_string())
    });
    let mut read = None;
    suite.check("reading everything", || {
        let mut source = open(dataset)?;
        let (rows, positions) = reading::everything(&mut *source)?;
        read = Some((source, rows, positions));
        Ok(())
    });
    let Some((mut source, rows, positions)) = read else { return suite.deviations() };
    suite.check("after the end", || reading::ended(&mut *source));
    suite.check("how far a read has come", || reading::comes_to_an_end(&positions, facts.reach));
    suite.check("the rows", || sound(&rows));
    suite.check("row numbers", || numbered(&rows, facts.numbering));
    suite.check("what the author knows of the rows", || as_known(&rows, facts));
    suite.check("counting rows", || counted(dataset, &rows));
    suite.check("columns", || declared(dataset, &rows));
    suite.check("the field that names rows", || named(dataset, &rows));
    suite.check("values without types", || untyped(dataset, &rows));
    suite.check("a notice", || {
        drop(dataset.read_notice());
        Ok(())
    });
    if dataset.is_rereadable() {
        reading::check(&mut suite, dataset, &rows);
        parts::check(&mut suite, dataset, &rows);
    }
    suite.check("what the input is after it was read", || same_identity(dataset));
    suite.deviations()
}

/// Starts a read that must succeed.
pub(super) fn open(dataset: &dyn Dataset) -> Result<Box<dyn rowmill_core::ports::RowSource>, String> {
    dataset.open().map_err(|problem| format!("it cannot be opened: {}", problem.message))
}

/// The number of a row, whether it is valid or bad.
pub(super) fn number(row: &RowReadResult) -> u64 {
    row.as_ref().map_or_else(|bad| bad.number, Row::number)
}

fn same_identity(dataset: &dyn Dataset) -> CheckResult {
    let identity =
        || dataset.identity().map_err(|problem| format!("it is not reported: {}", problem.message));
    let (first, second) = (identity()?, identity()?);
    ensure(first == second, || format!("it is reported as {first:?} and then as {second:?}"))
}

/// Checks that the text and the fields of a row match, and that a bad row has an error message.
fn sound(rows: &[RowReadResult]) -> CheckResult {
    for row in rows {
        match row {
            Ok(row) => {
                let parsed = Row::parse(row.number(), row.json_text().to_owned());
                let parsed = parsed
                    .map_err(|bad| format!("row {} is no JSON object: {}", row.number(), bad.message))?;
                ensure(parsed.fields().eq(row.fields()), || {
                    format!("the fields of row {} are not those of its text", row.number())
                })?;
            }
            Err(bad) => {
                ensure(!bad.message.is_empty(), || format!("the bad row {} says nothing", bad.number))?;
            }
        }
    }
    Ok(())
}

fn numbered(rows: &[RowReadResult], numbering: RowNumbering) -> CheckResult {
    let mut before = 0;
    for row in rows {
        let number = number(row);
        match numbering {
            RowNumbering::Growing => ensure(number > before, || format!("{number} comes after {before}"))?,
            RowNumbering::FromOne => {
                ensure(number == before + 1, || format!("{number} comes after {before}"))?
            }
        }
        before = number;
    }
    Ok(())
}

fn as_known(rows: &[RowReadResult], facts: &DatasetFacts) -> CheckResult {
    if let Some(known) = facts.rows {
        ensure(rows.len() == known, || format!("{} rows were read instead of {known}", rows.len()))?;
    }
    let Some(known) = &facts.bad else { return Ok(()) };
    let bad: Vec<u64> = rows.iter().filter(|row| row.is_err()).map(number).collect();
    ensure(bad == *known, || format!("the bad rows are {bad:?} instead of {known:?}"))
}

fn counted(dataset: &dyn Dataset, rows: &[RowReadResult]) -> CheckResult {
    let Some(count) = dataset.count().map_err(|problem| problem.to_string())? else { return Ok(()) };
    ensure(count == rows.len() as u64, || format!("{count} rows are reported, and {} were read", rows.len()))
}

fn declared(dataset: &dyn Dataset, rows: &[RowReadResult]) -> CheckResult {
    let Some(columns) = dataset.columns().map_err(|problem| problem.to_string())? else { return Ok(()) };
    let mut names = HashSet::new();
    for column in &columns {
        ensure(names.insert(&column.name), || format!("`{}` is declared twice", column.name))?;
    }
    for row in rows.iter().flatten() {
        for (name, value) in row.fields() {
            let column = columns.iter().find(|column| column.name == name);
            let DatasetColumn { kind, .. } =
                column.ok_or_else(|| format!("row {} has `{name}`, which is not declared", row.number()))?;
            ensure(is_of(*kind, value), || {
                format!("`{name}` is declared as {kind:?}, and row {} has {value}", row.number())
            })?;
        }
    }
    Ok(())
}

/// Whether a value is allowed in a column of this kind.
fn is_of(kind: ColumnKind, value: &str) -> bool {
    let first = value.bytes().next().unwrap_or_default();
    let is_number = first == b'-' || first.is_ascii_digit();
    value == "null"
        || match kind {
            ColumnKind::Text | ColumnKind::Decimal(..) => first == b'"',
            ColumnKind::Integer => is_number && !value.contains(['.', 'e', 'E']),
            ColumnKind::Real => is_number,
            ColumnKind::Boolean => matches!(value, "true" | "false"),
            ColumnKind::Nested => matches!(first, b'{' | b'['),
            ColumnKind::Mixed => true,
        }
}

fn named(dataset: &dyn Dataset, rows: &[RowReadResult]) -> CheckResult {
    let Some(field) = dataset.default_id_field() else { return Ok(()) };
    let mut ids = HashSet::new();
    for row in rows.iter().flatten() {
        let id = row.field(field).filter(|id| !matches!(*id, "null" | "\"\""));
        let id = id.ok_or_else(|| format!("row {} has no `{field}`", row.number()))?;
        ensure(ids.insert(id), || format!("two rows have {id} as their `{field}`"))?;
    }
    Ok(())
}

fn untyped(dataset: &dyn Dataset, rows: &[RowReadResult]) -> CheckResult {
    if !dataset.is_untyped() {
        return Ok(());
    }
    let values = rows.iter().flatten().flat_map(Row::fields);
    let other = values.map(|(_, value)| value).find(|value| *value != "null" && !value.starts_with('"'));
    ensure(other.is_none(), || {
        format!("all values are declared as text, and one is {}", other.unwrap_or_default())
    })
}
