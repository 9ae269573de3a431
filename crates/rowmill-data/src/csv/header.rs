//! The first record: the names of the columns.

use std::collections::{BTreeSet, HashSet};

use rowmill_core::json_text::write_string;
use rowmill_types::Field;

use super::records::Fields;

/// The columns of an input, in order.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) columns: Vec<Column>,
    /// The bytes that all names take in the text of a row.
    pub(crate) name_bytes: usize,
}

/// A column, with its name as it is written into each row.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: Box<str>,
    /// The name as a JSON string.
    pub(crate) json: Box<str>,
}

impl Header {
    /// Takes the names from the first record, or says what is wrong with them.
    pub(crate) fn parse(record: Fields<'_>, format: &str) -> Result<Self, String> {
        let mut columns = Vec::with_capacity(record.ends.len());
        for (at, range) in record.ranges().enumerate() {
            let bytes = record.bytes.get(range).unwrap_or_default();
            let Ok(name) = std::str::from_utf8(bytes) else {
                return Err(format!("{format} header is not valid UTF-8: column {}", at + 1));
            };
            columns.push(Column::new(name));
        }
        let blank: Vec<_> = (1..)
            .zip(&columns)
            .filter(|(_, column)| column.name.trim().is_empty())
            .map(|(at, _): (usize, _)| at.to_string())
            .collect();
        if !blank.is_empty() {
            return Err(format!("{format} header contains blank column names: {}", blank.join(", ")));
        }
        let repeated = repeated_names(&columns);
        if !repeated.is_empty() {
            return Err(format!("{format} header contains duplicate column names: {}", repeated.join(", ")));
        }
        let name_bytes = columns.iter().map(|column| column.json.len()).sum();
        Ok(Self { columns, name_bytes })
    }
}

impl Column {
    fn new(name: &str) -> Self {
        let mut json = String::with_capacity(name.len() + 2);
        write_string(name, &mut json);
        Self { name: name.into(), json: json.into() }
    }

    /// The field of this column in a row where its name begins at `start` and its
    /// value stands at `value`.
    pub(crate) fn field(&self, start: usize, value: std::ops::Range<usize>) -> Field {
        let has_escapes = self.json.len() != self.name.len() + 2;
        if has_escapes {
            Field::decoded(self.name.clone(), value)
        } else {
            Field::plain(start + 1..start + 1 + self.name.len(), value)
        }
    }
}

fn repeated_names(columns: &[Column]) -> Vec<&str> {
    let mut seen = HashSet::new();
    let names = columns.iter().map(|column| &*column.name);
    names.filter(|name| !seen.insert(*name)).collect::<BTreeSet<_>>().into_iter().collect()
}
