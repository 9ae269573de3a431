//! Combines several files into one table, matching columns by name.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray, Int64Array, NullArray};
use rowmill_core::json_text::decode_string;
use rowmill_types::{Problem, ProblemCode};
use tempfile::TempPath;

use super::compressed::decompress_to_temp;
use super::footer::{FileSummary, read_summary};
use super::layout::ColumnLayout;
use super::shape::ValueShape;
use super::sql_type::{joined_type, sql_type};
use crate::{FileList, InputFile, PartitionField};

/// Files as one table.
#[derive(Debug, Default)]
pub(super) struct ParquetTable {
    /// All columns, in the order of their first occurrence.
    pub(super) columns: Vec<TableColumn>,
    pub(super) files: Vec<TableFile>,
    places: HashMap<String, usize>,
    /// The columns that folder names give, with the types of their values.
    partition: Vec<(String, ValueShape)>,
}

/// A column of at least one file.
#[derive(Debug)]
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) shape: ValueShape,
    /// Its type, by DuckDB's name.
    pub(super) sql_type: String,
    /// The first file that has it.
    file: usize,
}

/// A file of the table.
#[derive(Debug)]
pub(super) struct TableFile {
    /// Its name in messages.
    pub(super) name: String,
    /// Where its bytes are.
    pub(super) path: PathBuf,
    pub(super) rows: u64,
    pub(super) size: u64,
    pub(super) layout: Arc<ColumnLayout>,
    /// The fields that its folder names give. They take precedence over columns of the file.
    pub(super) partition: Vec<PartitionField>,
    /// Keeps the decompressed file at `path` until the table is dropped.
    _unpacked: Option<TempPath>,
}

impl ParquetTable {
    /// Reads the footers of all files.
    pub(super) fn new(list: &FileList) -> Result<Self, Problem> {
        let mut table = Self { partition: partition_shapes(&list.files), ..Self::default() };
        for file in &list.files {
            table.add(file)?;
        }
        Ok(table)
    }

    /// The number of rows of all files.
    pub(super) fn rows(&self) -> u64 {
        self.files.iter().fold(0, |rows, file| rows.saturating_add(file.rows))
    }

    /// The column of this name.
    pub(super) fn column(&self, name: &str) -> Result<usize, Problem> {
        self.places.get(name).copied().ok_or_else(|| self.unknown_column(name))
    }

    fn add(&mut self, file: &InputFile) -> Result<(), Problem> {
        let unpacked = decompress_to_temp(file)?;
        let path = unpacked.as_ref().map_or_else(|| file.path.clone(), |path| path.to_path_buf());
        let FileSummary { rows, size, layout } = read_summary(&file.name, &path)?;
        let known = self.files.last().map(|last| &last.layout).filter(|known| known.is_same(&layout));
        let layout = match known {
            Some(known) => Arc::clone(known),
            None => {
                self.join(&file.name, &layout)?;
                Arc::new(layout)
            }
        };
        let InputFile { name, partition, .. } = file.clone();
        self.files.push(TableFile { name, path, rows, size, layout, partition, _unpacked: unpacked });
        Ok(())
    }

    fn join(&mut self, file: &str, layout: &ColumnLayout) -> Result<(), Problem> {
        let partition = self.partition.clone();
        let of_folders = |name: &String| partition.iter().find(|(other, _)| other == name);
        let decoded = layout.decoded.fields().iter().map(|field| field.data_type());
        let of_file = layout.names.iter().zip(&layout.shapes).zip(decoded);
        // If folder names give a column of the file, their value takes precedence, and the type in the file
        // is unused.
        let of_file = of_file.map(|((name, shape), decoded)| match of_folders(name) {
            Some((_, shape)) => (name, shape, partition_type(shape)),
            None => (name, shape, sql_type(shape, decoded)),
        });
        let of_folders = partition.iter().map(|(name, shape)| (name, shape, partition_type(shape)));
        for (name, shape, sql_type) in of_file.chain(of_folders) {
            let known = self.places.get(name).and_then(|place| self.columns.get_mut(*place));
            let Some(known) = known else {
                self.places.insert(name.clone(), self.columns.len());
                let (name, shape) = (name.clone(), shape.clone());
                self.columns.push(TableColumn { name, shape, sql_type, file: self.files.len() });
                continue;
            };
            match known.shape.joined(shape) {
                Some(joined) => {
                    if known.sql_type != sql_type {
                        known.sql_type = joined_type(&joined);
                    }
                    known.shape = joined;
                }
                None => {
                    let first = self.files.get(known.file).map_or("", |file| file.name.as_str());
                    let message = format!(
                        "column `{name}` differs between files: {} in `{first}`, {shape} in `{file}`",
                        known.shape
                    );
                    return Err(Problem::new(ProblemCode::InputUnreadable, message)
                        .hint("write the files with the same types, or read them one by one"));
                }
            }
        }
        Ok(())
    }

    fn unknown_column(&self, name: &str) -> Problem {
        const SHOWN: usize = 8;
        let mut names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        if names.len() > SHOWN {
            names.sort_by_cached_key(|known| distance(name, known));
            names.truncate(SHOWN);
        }
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let others = self.columns.len() - names.len();
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        Problem::new(ProblemCode::Usage, format!("the input has no column `{name}`"))
            .hint(format!("its columns are: {}{others}", names.join(", ")))
    }
}

/// The columns that folder names give; they are the same for all files.
fn partition_shapes(files: &[InputFile]) -> Vec<(String, ValueShape)> {
    let first = files.first().map(|file| file.partition.as_slice()).unwrap_or_default();
    let shape = |at: usize| {
        let values = files.iter().filter_map(|file| file.partition.get(at));
        values.fold(ValueShape::Null, |shape, field| match field.shape() {
            ValueShape::Null => shape,
            known => known,
        })
    };
    first.iter().enumerate().map(|(at, field)| (field.name.clone(), shape(at))).collect()
}

/// The type of a column that folder names give.
fn partition_type(shape: &ValueShape) -> String {
    match shape {
        ValueShape::Integer => "BIGINT".to_owned(),
        other => joined_type(other),
    }
}

impl PartitionField {
    /// The type of its value.
    pub(super) fn shape(&self) -> ValueShape {
        match self.json.as_bytes().first() {
            Some(b'"') => ValueShape::Text,
            Some(b'n') | None => ValueShape::Null,
            Some(_) => ValueShape::Integer,
        }
    }

    /// Its value as a one-row column.
    pub(super) fn array(&self) -> ArrayRef {
        match self.shape() {
            ValueShape::Text => {
                let text = decode_string(&self.json).unwrap_or_default();
                Arc::new(BinaryViewArray::from_iter_values([text.as_bytes()]))
            }
            ValueShape::Integer => Arc::new(Int64Array::from_iter([self.json.parse::<i64>().ok()])),
            _ => Arc::new(NullArray::new(1)),
        }
    }
}

/// The edit distance, ignoring case: how many letters must be changed, added or left out.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().flat_map(char::to_lowercase).enumerate() {
        let mut corner = at;
        let mut left = at + 1;
        for (cell, same) in row.iter_mut().skip(1).zip(&other) {
            let above = *cell;
            left = (corner + usize::from(letter != *same)).min(above + 1).min(left + 1);
            corner = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}
