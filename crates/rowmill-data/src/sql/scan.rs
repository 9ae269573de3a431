//! Scans a dataset for a query.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rowmill_core::ports::RowSource;
use rowmill_sql::{
    SqlTableColumn, SqlType, SqliteColumnValue, TableScan, TextInterpretation, sqlite_value_from_json,
    text_value,
};
use rowmill_types::settings::TYPES;
use rowmill_types::{BadRow, Problem, ProblemCode, Row};

use super::batches::{RowBatch, RowBatches, read_ahead_batches};
use super::column_values::{ColumnFinder, ColumnPlaces};
use super::handoff::RowHandoff;
use super::infer::{is_number, quoted_name};
use super::query_warnings::QueryWarnings;
use super::shape::{SqlColumns, TypeSource};
use super::table::{DatasetTable, RowTap};

/// One scan of a dataset.
pub(crate) struct RowScan {
    batches: RowBatches,
    /// The batch of rows that was read last.
    batch: RowBatch,
    /// The number of rows in the batch that the scan has visited, including the current one.
    passed: usize,
    places: ColumnPlaces,
    /// The remaining rows of the batch, if they are passed on.
    rows: std::vec::IntoIter<Row>,
    /// The current row.
    row: Option<Row>,
    shape: Arc<SqlColumns>,
    watch: Arc<QueryWarnings>,
    handoff: Arc<RowHandoff>,
    tap: Option<Arc<RowTap>>,
    bad: u64,
    first_bad: Option<BadRow>,
}

impl RowScan {
    /// A scan of the rows of `source`, for the columns in `wanted`.
    pub(crate) fn new(source: Box<dyn RowSource>, table: &DatasetTable, wanted: &[usize]) -> Self {
        let places = ColumnPlaces::new(&table.shape, wanted);
        let finder = ColumnFinder::new(&table.shape, places.clone(), table.tap.is_some());
        Self {
            batches: read_ahead_batches(source, finder),
            batch: RowBatch::default(),
            passed: 0,
            places,
            rows: Vec::new().into_iter(),
            row: None,
            shape: table.shape.clone(),
            watch: table.watch.clone(),
            handoff: table.handoff.clone(),
            tap: table.tap.clone(),
            bad: 0,
            first_bad: None,
        }
    }

    /// Passes the current row on if the query selected it.
    fn hand_on(&mut self) {
        if let (Some(tap), Some(row)) = (&self.tap, self.row.take())
            && tap.matched.swap(false, Ordering::Relaxed)
        {
            tap.handoff.push(Ok(row));
        }
    }

    /// Records a bad row.
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

    /// The JSON of a column in the current row.
    fn json(&self, column: usize) -> Option<&str> {
        let place = self.places.of(column)?;
        self.batch.found.json(self.passed.checked_sub(1)?, place, self.places.width)
    }

    /// Reads the next rows; `false` if there are none.
    fn refill(&mut self) -> Result<bool, Problem> {
        let Some(mut batch) = self.batches.next()? else { return Ok(false) };
        self.handoff.set_position(batch.position);
        if let Some((name, row)) = &batch.found.new_field {
            self.watch.warn_new_field(name, *row);
        }
        self.rows = std::mem::take(&mut batch.found.rows).into_iter();
        self.batch = batch;
        self.passed = 0;
        Ok(true)
    }
}

impl TableScan for RowScan {
    fn advance(&mut self) -> Result<bool, Problem> {
        self.hand_on();
        loop {
            while let Some((_, bad)) = self.batch.found.bad.pop_front_if(|(at, _)| *at == self.passed) {
                self.take_bad(bad);
            }
            if self.passed < self.batch.found.numbers.len() {
                self.passed += 1;
                self.row = self.rows.next();
                return Ok(true);
            }
            // If rows are passed on unchanged, they already include the bad row that stands for the rest.
            if let (Some(damage), None) = (self.batch.damage.take(), &self.tap) {
                return Err(damage);
            }
            if self.handoff.is_closed() || !self.refill()? {
                return Ok(false);
            }
        }
    }

    fn value(&self, column: usize) -> Result<SqliteColumnValue<'_>, Problem> {
        let (Some(json), Some(found)) = (self.json(column), self.shape.columns.get(column)) else {
            return Ok(SqliteColumnValue::Null);
        };
        let value = if self.shape.takes_all(column) {
            text_value(json, self.shape.text)
        } else {
            sqlite_value_from_json(json, &found.kind, self.shape.text)
        };
        value.ok_or_else(|| broken_type(self.number(), json, found, self.shape.type_source(column)))
    }

    fn raw(&self, column: usize) -> Option<Cow<'_, str>> {
        let json = self.json(column)?;
        let kind = &self.shape.columns.get(column)?.kind;
        if self.shape.text == TextInterpretation::AlwaysText {
            return Some(Cow::Borrowed(json));
        }
        // In a text-only format, numbers are strings, and null is an empty one.
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
        let at = self.passed.checked_sub(1);
        at.and_then(|at| self.batch.found.numbers.get(at)).copied().unwrap_or_default()
    }
}

impl Drop for RowScan {
    fn drop(&mut self) {
        self.hand_on();
        if let Some(first) = &self.first_bad {
            self.watch.warn_skipped_rows(self.bad, first);
        }
    }
}

/// How much of a value a message shows.
const SHOWN: usize = 60;

/// The problem that a value does not have the type of its column.
fn broken_type(row: u64, json: &str, column: &SqlTableColumn, source: TypeSource) -> Problem {
    let SqlTableColumn { name, kind, .. } = column;
    let mut value: String = json.chars().take(SHOWN).collect();
    if value.len() < json.len() {
        value.push('…');
    }
    let source = match source {
        TypeSource::Input => "as declared by the input".to_owned(),
        TypeSource::FirstRows => "as inferred from the first rows".to_owned(),
        TypeSource::Setting => format!("as set with {TYPES}"),
    };
    let message =
        format!("row {row} of the input has {value} in `{name}`, but the column is {kind}, {source}");
    let problem = Problem::new(ProblemCode::ColumnTypeBroken, message);
    if serde_json::from_str::<serde_json::Value>(json).is_err() {
        let why = "an escape in it, such as half of a surrogate pair, is not a character";
        return problem.hint(format!("{why}: fix it in the input"));
    }
    let written = quoted_name(name);
    problem.hint(format!(
        "read the column as text with {types}: its values stay as they are; to compute with it, write \
         `TRY_CAST({written} AS {kind})`, which gives null for text that is not {kind}",
        types = TYPES.with_value(format_args!("{name}=text"))
    ))
}
