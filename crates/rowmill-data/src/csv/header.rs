//! The first record: the column names.

use std::collections::{BTreeSet, HashSet};

use rowmill_types::RowLayout;

use super::records::CsvFields;

/// Reads the column names from the first record, or returns what is wrong with them.
pub(crate) fn header_columns(record: CsvFields<'_>, format: &str) -> Result<RowLayout, String> {
    let mut names = Vec::with_capacity(record.ends.len());
    for (at, range) in record.ranges().enumerate() {
        let bytes = record.bytes.get(range).unwrap_or_default();
        let Ok(name) = std::str::from_utf8(bytes) else {
            return Err(format!("{format} header is not valid UTF-8: column {}", at + 1));
        };
        names.push(name);
    }
    let blank: Vec<_> = (1..)
        .zip(&names)
        .filter(|(_, name)| name.trim().is_empty())
        .map(|(at, _): (usize, _)| at.to_string())
        .collect();
    if !blank.is_empty() {
        return Err(format!("{format} header contains blank column names: {}", blank.join(", ")));
    }
    let repeated = repeated_names(&names);
    if !repeated.is_empty() {
        return Err(format!("{format} header contains duplicate column names: {}", repeated.join(", ")));
    }
    Ok(RowLayout::new(names.into_iter()))
}

fn repeated_names<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let mut seen = HashSet::new();
    names.iter().copied().filter(|name| !seen.insert(*name)).collect::<BTreeSet<_>>().into_iter().collect()
}
