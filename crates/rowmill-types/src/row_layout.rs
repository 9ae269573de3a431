//! Columns shared by many rows, so that the rows need not store them individually.

use std::ops::Range;
use std::sync::Arc;

use crate::Row;

/// The columns of rows with the same layout: `{"id":1,"name":"x"}`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowLayout {
    columns: Vec<RowColumn>,
}

#[derive(Debug, PartialEq, Eq)]
struct RowColumn {
    name: Box<str>,
    /// The text before the value: `,"name":`.
    start: Box<str>,
}

impl RowLayout {
    /// Columns with these names, in this order. Names must be unique.
    pub fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut columns = Vec::new();
        for name in names {
            let mut start = String::from(if columns.is_empty() { "{" } else { "," });
            // A string is always JSON.
            start.push_str(&serde_json::to_string(name).unwrap_or_default());
            start.push(':');
            columns.push(RowColumn { name: name.into(), start: start.into() });
        }
        Self { columns }
    }

    /// The names of the columns.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }

    /// The number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The number of bytes that all names and separators take in a row.
    #[must_use]
    pub fn name_byte_count(&self) -> usize {
        self.columns.iter().map(|column| column.start.len()).sum::<usize>() + 2
    }

    /// The text before the value of a column: `,"name":`.
    #[must_use]
    pub fn value_prefix(&self, column: usize) -> &str {
        self.columns.get(column).map_or("", |column| &column.start)
    }

    /// A row from consistent parts: `text` has every column after its [`value_prefix`], and `ends` holds the end of each value
    /// in it.
    ///
    /// [`value_prefix`]: Self::value_prefix
    ///
    /// ```
    /// # use {rowmill_types::RowLayout, std::sync::Arc};
    /// let columns = Arc::new(RowLayout::new(["a", "b"].into_iter()));
    /// let row = columns.build_row(7, r#"{"a":1,"b":null}"#.into(), [6, 15].into());
    /// assert_eq!((row.field("a"), row.field("b")), (Some("1"), Some("null")));
    /// ```
    #[must_use]
    pub fn build_row(self: &Arc<Self>, number: u64, text: String, ends: Box<[u32]>) -> Row {
        debug_assert_eq!(ends.len(), self.len(), "a value for every column");
        Row::from_shared(number, text, SharedFields { columns: Arc::clone(self), ends })
    }

    pub(crate) fn name(&self, column: usize) -> Option<&str> {
        self.columns.get(column).map(|column| &*column.name)
    }

    pub(crate) fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column.name == *name)
    }
}

/// The positions of the values of a row with shared columns.
#[derive(Debug, Clone)]
pub(crate) struct SharedFields {
    pub(crate) columns: Arc<RowLayout>,
    /// The end of each value.
    ends: Box<[u32]>,
}

impl SharedFields {
    /// The range of a value in the text.
    pub(crate) fn value(&self, column: usize) -> Option<Range<usize>> {
        let end = *self.ends.get(column)? as usize;
        let before = column.checked_sub(1).and_then(|before| self.ends.get(before));
        Some(before.map_or(0, |end| *end as usize) + self.columns.value_prefix(column).len()..end)
    }
}

/// Builds a row with shared columns, value by value.
///
/// ```
/// # use {rowmill_types::{RowLayout, RowBuilder}, std::sync::Arc};
/// let columns = Arc::new(RowLayout::new(["a", "b"].into_iter()));
/// let mut writer = RowBuilder::new(columns, 32);
/// writer.push_value(|text| text.push('1'));
/// writer.push_value(|text| text.push_str("null"));
/// let row = writer.into_row(7).unwrap();
/// assert_eq!((row.number(), row.json_text(), row.field("b")), (7, r#"{"a":1,"b":null}"#, Some("null")));
/// ```
#[derive(Debug)]
pub struct RowBuilder {
    columns: Arc<RowLayout>,
    text: String,
    ends: Vec<u32>,
}

impl RowBuilder {
    /// A row without values, with room for `capacity` bytes.
    #[must_use]
    pub fn new(columns: Arc<RowLayout>, capacity: usize) -> Self {
        let ends = Vec::with_capacity(columns.len());
        Self { columns, text: String::with_capacity(capacity), ends }
    }

    /// Appends the value of the next column; `write` must append it to the text as JSON.
    pub fn push_value<T>(&mut self, write: impl FnOnce(&mut String) -> T) -> T {
        self.text.push_str(self.columns.value_prefix(self.ends.len()));
        let written = write(&mut self.text);
        // A text that is too long for `u32` is rejected at the end.
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        written
    }

    /// The row, once it has a value for every column; `None` if it is longer than 4 GiB.
    #[must_use]
    pub fn into_row(mut self, number: u64) -> Option<Row> {
        debug_assert_eq!(self.ends.len(), self.columns.len(), "a value for every column");
        self.text.push_str(if self.columns.is_empty() { "{}" } else { "}" });
        u32::try_from(self.text.len()).ok()?;
        Some(self.columns.build_row(number, self.text, self.ends.into_boxed_slice()))
    }
}
