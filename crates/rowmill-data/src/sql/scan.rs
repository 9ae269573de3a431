//! Reading a dataset for a query.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rowmill_core::ports::RowSource;
use rowmill_sql::{Column, FieldText, Scan, SqlType, Value, column_value, text_value};
use rowmill_types::settings::TYPES;
use rowmill_types::{BadRow, Problem, ProblemCode, Row, SourceRow};

use super::batches::{RowBatches, batches};
use super::handoff::Handoff;
use super::infer::{is_number, written_name};
use super::shape::Shape;
use super::table::{DatasetTable, Tap};
use super::watch::Watch;

/// One read of a dataset.
pub(crate) struct RowScan {
    batches: RowBatches,
    /// The rows that were read last.
    batch: std::vec::IntoIter<SourceRow>,
    row: Option<Row>,
    finder: Finder,
    shape: Arc<Shape>,
    watch: Arc<Watch>,
    handoff: Arc<Handoff>,
    tap: Option<Arc<Tap>>,
    bad: u64,
    first_bad: Option<BadRow>,
}

impl RowScan {
    pub(crate) fn new(source: Box<dyn RowSource>, table: &DatasetTable) -> Self {
        Self {
            batches: batches(source, &table.shape),
            batch: Vec::new().into_iter(),
            row: None,
            finder: Finder::new(&table.shape),
            shape: table.shape.clone(),
            watch: table.watch.clone(),
            handoff: table.handoff.clone(),
            tap: table.tap.clone(),
            bad: 0,
            first_bad: None,
        }
    }

    /// Hands the row on that the query found to be right while the scan stood on it.
    fn hand_on(&mut self) {
        if let (Some(tap), Some(row)) = (&self.tap, self.row.take())
            && tap.matched.swap(false, Ordering::Relaxed)
        {
            tap.handoff.push(Ok(row));
        }
    }

    /// Keeps account of a row that is none.
    fn take_bad(&mut self, bad: BadRow) {
        match &self.tap {
            Some(tap) => {
                tap.handoff.push(Err(bad));
            }
            None => {
                self.bad += 1;
                self.first_bad.get_or_insert(bad);
            }
        }
    }

    /// The JSON of a column in the row that the scan stands on.
    fn json(&self, column: usize) -> Option<&str> {
        self.row.as_ref()?.text().get(self.finder.place(column)?)
    }

    /// Takes up the next rows; `false` once there are none.
    fn refill(&mut self) -> Result<bool, Problem> {
        let Some(batch) = self.batches.next()? else { return Ok(false) };
        self.batch = batch.rows.into_iter();
        self.handoff.set_position(batch.position);
        Ok(true)
    }
}

impl Scan for RowScan {
    fn advance(&mut self) -> Result<bool, Problem> {
        self.hand_on();
        loop {
            match self.batch.next() {
                Some(Ok(row)) => {
                    if let Some(name) = self.finder.find(&row, &self.shape) {
                        self.watch.new_field(name, row.number());
                    }
                    self.row = Some(row);
                    return Ok(true);
                }
                Some(Err(bad)) => self.take_bad(bad),
                None if self.handoff.is_closed() || !self.refill()? => return Ok(false),
                None => {}
            }
        }
    }

    fn value(&self, column: usize) -> Result<Value<'_>, Problem> {
        let (Some(json), Some(found)) = (self.json(column), self.shape.columns.get(column)) else {
            return Ok(Value::Null);
        };
        if self.shape.takes_all.get(column) == Some(&true) {
            return Ok(text_value(json, self.shape.text));
        }
        column_value(json, &found.kind, self.shape.text).ok_or_else(|| {
            let row = self.row.as_ref().map_or(0, Row::number);
            broken_type(row, json, found, &self.shape)
        })
    }

    fn raw(&self, column: usize) -> Option<Cow<'_, str>> {
        let json = self.json(column)?;
        let kind = &self.shape.columns.get(column)?.kind;
        if self.shape.text == FieldText::IsText {
            return Some(Cow::Borrowed(json));
        }
        // A format that knows only text has numbers as strings, and nothing as an empty one.
        match json.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some("") => None,
            _ if *kind == SqlType::Varchar => Some(Cow::Borrowed(json)),
            Some(_) if matches!(kind, SqlType::Json | SqlType::List(_) | SqlType::Struct(_)) => {
                serde_json::from_str::<String>(json).ok().map(Cow::Owned)
            }
            Some(text)
                if is_number(text)
                    && matches!(kind, SqlType::BigInt | SqlType::Double | SqlType::HugeInt) =>
            {
                Some(Cow::Borrowed(text))
            }
            Some(text @ ("true" | "false")) if *kind == SqlType::Boolean => Some(Cow::Borrowed(text)),
            _ => Some(Cow::Borrowed(json)),
        }
    }

    fn number(&self) -> u64 {
        self.row.as_ref().map_or(0, Row::number)
    }
}

impl Drop for RowScan {
    fn drop(&mut self) {
        self.hand_on();
        if let Some(first) = &self.first_bad {
            self.watch.left_out(self.bad, first);
        }
    }
}

/// How much of a value is shown in a message.
const SHOWN: usize = 60;

/// A value does not have the type of its column.
fn broken_type(row: u64, json: &str, column: &Column, shape: &Shape) -> Problem {
    let Column { name, kind, .. } = column;
    let mut value: String = json.chars().take(SHOWN).collect();
    if value.len() < json.len() {
        value.push('…');
    }
    let source = if shape.declared { "the input declares" } else { "the first rows have" };
    let message = format!("row {row} of the input has {value} in `{name}`, which is {kind} as {source}");
    let written = written_name(name);
    Problem::new(ProblemCode::ColumnTypeBroken, message).hint(format!(
        "{types} reads the column as text; `TRY_CAST({written} AS {kind})` in the query then gives null for such values", types = TYPES.to(format_args!("{name}=text"))
    ))
}

/// Finds the columns of a table in rows, whose fields mostly stand in the same order.
struct Finder {
    columns: HashMap<String, usize>,
    /// The column that the field at a place was in the row before.
    guesses: Vec<usize>,
    /// Where the value of each column is in the text of the row.
    places: Vec<Option<Range<usize>>>,
    /// Whether fields that are no column should be told of.
    tells: bool,
}

impl Finder {
    fn new(shape: &Shape) -> Self {
        let columns = shape.fields.iter().enumerate().map(|(at, field)| (field.clone(), at)).collect();
        let tells = !shape.declared && shape.notices.is_empty();
        Self { columns, guesses: Vec::new(), places: vec![None; shape.fields.len()], tells }
    }

    /// Finds the columns of a row; returns the name of a field that is none.
    fn find<'r>(&mut self, row: &'r Row, shape: &Shape) -> Option<&'r str> {
        let start = row.text().as_ptr() as usize;
        let mut unknown = None;
        self.places.fill(None);
        for (at, (name, json)) in row.fields().enumerate() {
            let guessed = self
                .guesses
                .get(at)
                .copied()
                .filter(|guess| shape.fields.get(*guess).is_some_and(|field| field == name));
            let Some(column) = guessed.or_else(|| self.columns.get(name).copied()) else {
                unknown = unknown.or(Some(name));
                continue;
            };
            if guessed.is_none() {
                self.guesses.resize(self.guesses.len().max(at + 1), usize::MAX);
                if let Some(guess) = self.guesses.get_mut(at) {
                    *guess = column;
                }
            }
            let from = json.as_ptr() as usize - start;
            if let Some(place) = self.places.get_mut(column) {
                *place = Some(from..from + json.len());
            }
        }
        unknown.filter(|_| self.tells)
    }

    fn place(&self, column: usize) -> Option<Range<usize>> {
        self.places.get(column)?.clone()
    }
}
