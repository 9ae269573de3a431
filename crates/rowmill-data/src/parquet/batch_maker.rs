//! Turns decoded columns into rows that can be written.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::errors::{ParquetError, Result as Decoded};
use rowmill_types::RowLayout;

use super::batch::DecodedBatch;
use super::cells::ColumnCells;
use super::layout::ColumnLayout;
use super::table::TableFile;

/// The source of a column's values.
enum CellSource {
    /// The decoded column at this position.
    Decoded(usize),
    /// All rows have the same value, as JSON.
    Same(Arc<str>),
    /// The file lacks the column.
    Lacking,
}

/// Makes batches of the decoded columns of a file.
pub(super) struct BatchMaker {
    columns: Arc<RowLayout>,
    layout: Arc<ColumnLayout>,
    /// The columns to decode, in the order of the file.
    pub(super) decoded: Vec<usize>,
    /// The source of the values of each wanted column.
    places: Vec<CellSource>,
}

impl BatchMaker {
    /// For reading these columns of a file.
    pub(super) fn new(file: &TableFile, wanted: &Arc<RowLayout>) -> Self {
        let layout = Arc::clone(&file.layout);
        let of_folders = |name: &str| file.partition.iter().find(|field| field.name == name);
        let columns: HashMap<_, _> = layout.names.iter().map(String::as_str).zip(0..).collect();
        let of_file = |name: &str| columns.get(name).copied();
        let mut decoded: Vec<usize> =
            wanted.names().filter(|name| of_folders(name).is_none()).filter_map(of_file).collect();
        decoded.sort_unstable();
        let place = |name: &str| match (of_folders(name), of_file(name)) {
            (Some(field), _) => CellSource::Same(field.json.as_str().into()),
            (None, Some(column)) => {
                decoded.binary_search(&column).map_or(CellSource::Lacking, CellSource::Decoded)
            }
            (None, None) => CellSource::Lacking,
        };
        let places = wanted.names().map(place).collect();
        Self { columns: Arc::clone(wanted), layout: Arc::clone(&layout), decoded, places }
    }

    /// The rows of a decoded batch.
    pub(super) fn batch(&self, decoded: &RecordBatch) -> Decoded<DecodedBatch> {
        let mut cells = Vec::with_capacity(self.places.len());
        for place in &self.places {
            cells.push(match place {
                CellSource::Decoded(place) => Some(self.cells(decoded, *place)?),
                CellSource::Same(json) => Some(ColumnCells::same(json)),
                CellSource::Lacking => None,
            });
        }
        Ok(DecodedBatch::new(Arc::clone(&self.columns), cells, decoded.num_rows()))
    }

    /// The values of a decoded column, by its position.
    fn cells(&self, decoded: &RecordBatch, place: usize) -> Decoded<ColumnCells> {
        let column = self.decoded.get(place).copied().unwrap_or(usize::MAX);
        let made = match (self.layout.shapes.get(column), decoded.columns().get(place)) {
            (Some(shape), Some(array)) => ColumnCells::new(shape, array),
            _ => None,
        };
        made.ok_or_else(|| {
            let name = self.layout.names.get(column).map_or("", String::as_str);
            ParquetError::General(format!("column `{name}` was decoded as another type"))
        })
    }
}
