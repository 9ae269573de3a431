//! The differences between two runs, row by row.

use std::collections::BTreeMap;
use std::path::Path;

use rowmill_types::{Problem, Row};
use serde::Serialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::envelopes::{EnvelopeLines, EnvelopeView, envelopes_path, parse_envelope};

/// The differences between two runs. "Here" is the first of them, "there" the second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunDiff {
    /// Rows with the same result.
    pub same: u64,
    /// Rows that are ok in both, with different results.
    pub changed: u64,
    /// Rows that are ok here and failed there.
    pub ok_only_here: u64,
    /// Rows that failed here and are ok there.
    pub ok_only_there: u64,
    /// Rows that failed in both.
    pub failed_in_both: u64,
    /// Rows that are only in the first run.
    pub only_here: u64,
    /// Rows that are only in the second run.
    pub only_there: u64,
    /// How many changed rows differ in each field; the name is empty for results that are not objects.
    pub fields: BTreeMap<String, u64>,
    /// The first rows that differ.
    pub examples: Vec<ChangedRow>,
}

/// A row that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedRow {
    /// The row number; that of the first run, if both have the row.
    pub row_number: u64,
    /// The id.
    pub id: String,
    /// The differences.
    pub fields: Vec<ChangedResultField>,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedResultField {
    /// The field of the result, or `error` for the type of an error.
    pub name: String,
    /// The value here, as JSON.
    pub here: Option<String>,
    /// The value there, as JSON.
    pub there: Option<String>,
}

impl RunDiff {
    /// Whether both runs have the same rows with the same outcomes.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.changed + self.ok_only_here + self.ok_only_there + self.only_here + self.only_there == 0
    }
}

/// Compares the outputs of two runs by the ids of their rows.
///
/// If both are in the order of row numbers and their ids agree, they are read side by side; otherwise
/// 24 bytes per row of the second one are kept in memory.
///
/// # Errors
///
/// An output is missing, or a line of it is not an envelope.
pub fn diff_runs(here: &Path, there: &Path, examples: usize) -> Result<RunDiff, Problem> {
    let (here, there) = (envelopes_path(here)?, envelopes_path(there)?);
    match side_by_side(&here, &there, examples)? {
        Some(diff) => Ok(diff),
        None => by_id(&here, &there, examples),
    }
}

/// Two runs during the comparison.
struct RunComparison {
    diff: RunDiff,
    examples: usize,
}

/// Reads both in the order of row numbers; `None` if the numbers do not determine which rows belong
/// together.
fn side_by_side(here: &Path, there: &Path, examples: usize) -> Result<Option<RunDiff>, Problem> {
    let mut comparison = RunComparison { diff: RunDiff::default(), examples };
    let (mut left, mut right) = (OrderedEnvelopes::open(here)?, OrderedEnvelopes::open(there)?);
    let mut texts = false;
    let mut more = (left.advance()?, right.advance()?);
    loop {
        if left.out_of_order || right.out_of_order {
            return Ok(None);
        }
        let (one, other) = (more.0.then(|| left.envelope()), more.1.then(|| right.envelope()));
        match (one.transpose()?, other.transpose()?) {
            (None, None) => break,
            (Some(one), None) => {
                comparison.diff.only_here += 1;
                texts |= is_text(&one);
                more.0 = left.advance()?;
            }
            (None, Some(other)) => {
                comparison.diff.only_there += 1;
                texts |= is_text(&other);
                more.1 = right.advance()?;
            }
            (Some(one), Some(other)) if one.row_number < other.row_number => {
                comparison.diff.only_here += 1;
                texts |= is_text(&one);
                more.0 = left.advance()?;
            }
            (Some(one), Some(other)) if one.row_number > other.row_number => {
                comparison.diff.only_there += 1;
                texts |= is_text(&other);
                more.1 = right.advance()?;
            }
            (Some(one), Some(other)) => {
                if one.id.get() != other.id.get() {
                    return Ok(None);
                }
                comparison.compare(&one, &other);
                more = (left.advance()?, right.advance()?);
            }
        }
    }
    // A row with an id of its own may have another number there.
    let moved = texts && comparison.diff.only_here > 0 && comparison.diff.only_there > 0;
    Ok((!moved).then_some(comparison.diff))
}

/// Envelopes that should be in the order of row numbers.
struct OrderedEnvelopes {
    lines: EnvelopeLines,
    line: Vec<u8>,
    last: Option<u64>,
    out_of_order: bool,
}

impl OrderedEnvelopes {
    fn open(path: &Path) -> Result<Self, Problem> {
        Ok(Self { lines: EnvelopeLines::open(path)?, line: Vec::new(), last: None, out_of_order: false })
    }

    fn advance(&mut self) -> Result<bool, Problem> {
        self.line.clear();
        let Some((_, line)) = self.lines.next()? else { return Ok(false) };
        self.line.extend_from_slice(line);
        let number = self.envelope()?.row_number;
        self.out_of_order |= self.last.is_some_and(|last| last >= number);
        self.last = Some(number);
        Ok(true)
    }

    fn envelope(&self) -> Result<EnvelopeView<'_>, Problem> {
        parse_envelope(&self.line).map_err(|error| self.lines.no_envelope(&error))
    }
}

fn is_text(envelope: &EnvelopeView<'_>) -> bool {
    envelope.id.get().starts_with('"')
}

/// The position of a row's envelope, by a digest of the id.
#[derive(Clone, Copy)]
struct EnvelopePlace {
    id: u64,
    offset: u64,
    outcome: u64,
}

fn by_id(here: &Path, there: &Path, examples: usize) -> Result<RunDiff, Problem> {
    let mut comparison = RunComparison { diff: RunDiff::default(), examples };
    let known = known_rows(there)?;
    let mut seen = vec![false; known.len()];
    let mut others = EnvelopeLines::open(there)?;
    let own = known_rows(here)?;
    let mut lines = EnvelopeLines::open(here)?;
    while let Some((offset, line)) = lines.next()? {
        let one = match parse_envelope(line) {
            Ok(envelope) => envelope,
            Err(error) => return Err(lines.no_envelope(&error)),
        };
        let id = xxh3_64(one.id.get().as_bytes());
        // If a row has several envelopes, the last one counts.
        let last = own.binary_search_by_key(&id, |row| row.id).ok().and_then(|at| own.get(at));
        if last.is_some_and(|last| last.offset != offset) {
            continue;
        }
        let Some((at, row)) =
            known.binary_search_by_key(&id, |row| row.id).ok().and_then(|at| Some((at, known.get(at)?)))
        else {
            comparison.diff.only_here += 1;
            continue;
        };
        if let Some(mark) = seen.get_mut(at) {
            *mark = true;
        }
        if row.outcome == outcome(&one) {
            comparison.count_same(one.ok);
            continue;
        }
        let line = others.at(row.offset)?;
        if let Ok(other) = parse_envelope(line) {
            comparison.compare(&one, &other);
        }
    }
    comparison.diff.only_there = seen.iter().filter(|seen| !**seen).count() as u64;
    Ok(comparison.diff)
}

/// Every row of an output, sorted by the digest of its id; of several envelopes the last.
fn known_rows(path: &Path) -> Result<Vec<EnvelopePlace>, Problem> {
    let mut known = Vec::new();
    let mut lines = EnvelopeLines::open(path)?;
    while let Some((offset, line)) = lines.next()? {
        let row = match parse_envelope(line) {
            Ok(envelope) => (xxh3_64(envelope.id.get().as_bytes()), outcome(&envelope)),
            Err(error) => return Err(lines.no_envelope(&error)),
        };
        known.push(EnvelopePlace { id: row.0, offset, outcome: row.1 });
    }
    known.sort_unstable_by_key(|row| (row.id, std::cmp::Reverse(row.offset)));
    known.dedup_by_key(|row| row.id);
    Ok(known)
}

/// A digest of the outcome of a row.
fn outcome(envelope: &EnvelopeView<'_>) -> u64 {
    if envelope.ok {
        xxh3_64(envelope.result_text().as_bytes())
    } else {
        xxh3_64(envelope.error_kind().as_bytes())
    }
}

impl RunComparison {
    fn count_same(&mut self, ok: bool) {
        if ok {
            self.diff.same += 1;
        } else {
            self.diff.failed_in_both += 1;
        }
    }

    fn compare(&mut self, one: &EnvelopeView<'_>, other: &EnvelopeView<'_>) {
        let changes = match (one.ok, other.ok) {
            (false, false) => {
                self.diff.failed_in_both += 1;
                return;
            }
            (true, true) => {
                let changes = changed_fields(one.result_text(), other.result_text());
                if changes.is_empty() {
                    self.diff.same += 1;
                    return;
                }
                self.diff.changed += 1;
                for field in &changes {
                    match self.diff.fields.get_mut(&field.name) {
                        Some(count) => *count += 1,
                        None => drop(self.diff.fields.insert(field.name.clone(), 1)),
                    }
                }
                changes
            }
            (true, false) => {
                self.diff.ok_only_here += 1;
                vec![error_field(None, Some(other.error_kind()))]
            }
            (false, true) => {
                self.diff.ok_only_there += 1;
                vec![error_field(Some(one.error_kind()), None)]
            }
        };
        if self.diff.examples.len() < self.examples {
            let example = ChangedRow { row_number: one.row_number, id: one.shown_id(), fields: changes };
            self.diff.examples.push(example);
        }
    }
}

fn error_field(here: Option<&str>, there: Option<&str>) -> ChangedResultField {
    ChangedResultField {
        name: "error".into(),
        here: here.map(|kind| Value::from(kind).to_string()),
        there: there.map(|kind| Value::from(kind).to_string()),
    }
}

/// The fields in which two results differ, in any order; a field without a name stands for results that
/// are not both objects.
fn changed_fields(here: &str, there: &str) -> Vec<ChangedResultField> {
    if here == there {
        return Vec::new();
    }
    let same = |one: &str, other: &str| {
        let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
        one == other || parse(one).is_some_and(|one| Some(one) == parse(other))
    };
    let whole = || {
        let field =
            ChangedResultField { name: String::new(), here: Some(here.into()), there: Some(there.into()) };
        if same(here, there) { Vec::new() } else { vec![field] }
    };
    let objects = here.starts_with('{') && there.starts_with('{');
    let parse = |text: &str| Row::parse(0, text.to_owned()).ok().filter(|_| objects);
    let (Some(one), Some(other)) = (parse(here), parse(there)) else { return whole() };
    let mut changes = Vec::new();
    for (name, value) in one.fields() {
        let counterpart = other.field(name);
        if counterpart.is_none_or(|counterpart| !same(value, counterpart)) {
            changes.push(ChangedResultField {
                name: name.to_owned(),
                here: Some(value.to_owned()),
                there: counterpart.map(str::to_owned),
            });
        }
    }
    for (name, value) in other.fields().filter(|(name, _)| one.field(name).is_none()) {
        changes.push(ChangedResultField { name: name.to_owned(), here: None, there: Some(value.to_owned()) });
    }
    changes
}
