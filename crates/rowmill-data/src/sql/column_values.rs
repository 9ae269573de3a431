//! Extracts the values that a query needs from the rows of an input.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rowmill_types::{BadRow, Row, RowReadResult};

use super::shape::SqlColumns;

/// The values that a query needs from rows that were read at once. They are kept in a few large allocations
/// instead of some per row: if one thread makes small ones and another frees them, both wait for the
/// allocator.
#[derive(Debug, Default)]
pub(super) struct ColumnValues {
    /// The JSON of all values, row by row.
    text: String,
    /// The end of each value in the text; missing values are empty.
    ends: Vec<usize>,
    /// The numbers of the rows.
    pub(super) numbers: Vec<u64>,
    /// The rows themselves, if they are passed on unchanged.
    pub(super) rows: Vec<Row>,
    /// Bad rows, each with the number of rows before it.
    pub(super) bad: VecDeque<(usize, BadRow)>,
    /// The first field that is not a column, and its row number.
    pub(super) new_field: Option<(String, u64)>,
}

impl ColumnValues {
    /// The JSON of a value: `row` is an index into these rows, and `place` one into the `width` values of a
    /// row.
    pub(super) fn json(&self, row: usize, place: usize, width: usize) -> Option<&str> {
        let at = row * width + place;
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(start..*self.ends.get(at)?).filter(|json| !json.is_empty())
    }
}

/// The columns that a query needs, each with its index among the values.
#[derive(Debug, Clone)]
pub(super) struct ColumnPlaces {
    of_columns: Arc<[Option<usize>]>,
    pub(super) width: usize,
}

impl ColumnPlaces {
    /// `wanted` contains columns of the shape, in order.
    pub(super) fn new(shape: &SqlColumns, wanted: &[usize]) -> Self {
        let place = |column| wanted.iter().position(|wanted| *wanted == column);
        Self { of_columns: (0..shape.fields.len()).map(place).collect(), width: wanted.len() }
    }

    pub(super) fn of(&self, column: usize) -> Option<usize> {
        *self.of_columns.get(column)?
    }
}

/// Finds the columns of a table in rows, whose fields are mostly in the same order.
pub(super) struct ColumnFinder {
    shape: Arc<SqlColumns>,
    places: ColumnPlaces,
    columns: HashMap<String, usize>,
    /// The column of each field position in the previous row.
    guesses: Vec<usize>,
    /// The ranges of the values in the current row, by index.
    values: Vec<std::ops::Range<usize>>,
    /// Whether fields that are not columns are reported.
    tells: bool,
    /// Whether the rows are also kept.
    keeps_rows: bool,
}

impl ColumnFinder {
    pub(super) fn new(shape: &Arc<SqlColumns>, places: ColumnPlaces, keeps_rows: bool) -> Self {
        let columns = shape.fields.iter().enumerate().map(|(at, field)| (field.clone(), at)).collect();
        Self {
            columns,
            guesses: Vec::new(),
            values: vec![0..0; places.width],
            tells: !shape.declared && shape.notices.is_empty(),
            shape: Arc::clone(shape),
            places,
            keeps_rows,
        }
    }

    /// Whether rows are kept that have more fields than requested. If columns are declared, no others are
    /// read.
    pub(super) fn makes_large_rows(&self) -> bool {
        self.keeps_rows && !self.shape.declared
    }

    /// Extracts the needed values from rows and consumes them.
    pub(super) fn find_all(&mut self, rows: &mut Vec<RowReadResult>) -> ColumnValues {
        let mut found = ColumnValues::default();
        found.ends.reserve(rows.len() * self.places.width);
        found.numbers.reserve(rows.len());
        for row in rows.drain(..) {
            match row {
                Ok(row) => self.find(row, &mut found),
                Err(bad) => found.bad.push_back((found.numbers.len(), bad)),
            }
        }
        found
    }

    fn find(&mut self, row: Row, found: &mut ColumnValues) {
        let text = row.json_text();
        let start = text.as_ptr().addr();
        self.values.fill(0..0);
        for (at, (name, json)) in row.fields().enumerate() {
            let Some(column) = self.column(at, name) else {
                if self.tells && found.new_field.is_none() {
                    found.new_field = Some((name.to_owned(), row.number()));
                }
                continue;
            };
            if let Some(value) = self.places.of(column).and_then(|place| self.values.get_mut(place)) {
                // The value is a slice of the row, so its address gives its offset.
                let from = json.as_ptr().addr() - start;
                *value = from..from + json.len();
            }
        }
        for value in &self.values {
            found.text.push_str(text.get(value.clone()).unwrap_or_default());
            found.ends.push(found.text.len());
        }
        found.numbers.push(row.number());
        if self.keeps_rows {
            found.rows.push(row);
        }
    }

    /// The column of the field at a position of a row.
    fn column(&mut self, at: usize, name: &str) -> Option<usize> {
        let guess = self.guesses.get(at).copied();
        if guess.is_some_and(|guess| self.shape.fields.get(guess).is_some_and(|field| field == name)) {
            return guess;
        }
        let column = self.columns.get(name).copied()?;
        self.guesses.resize(self.guesses.len().max(at + 1), usize::MAX);
        if let Some(guess) = self.guesses.get_mut(at) {
            *guess = column;
        }
        Some(column)
    }
}
