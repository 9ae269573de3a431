//! Reads the row groups of a file one after the other.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::{Array as _, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::errors::{ParquetError, Result as Decoded};
use parquet::file::metadata::RowGroupMetaData;
use rowmill_types::{Problem, RowLayout};

use super::batch_maker::BatchMaker;
use super::conditions::ColumnTest;
use super::decode_ahead::{BatchReader, WriteAhead, decode_ahead};
use super::dictionary;
use super::footer::{group_row_count, load_metadata};
use super::group::{RowGroupReader, SelectedGroup};
use super::layout::ColumnLayout;
use super::problems;
use super::problems::catch_decoder_panic;
use super::pruning::{matching_groups, matching_rows};
use super::shape::ValueShape;
use super::table::TableFile;
use crate::dataset::open_problem;

/// The target size of a batch in decoded bytes, as far as the footer shows.
const BATCH_BYTES: u64 = 4 << 20;
/// The maximum number of rows of a batch.
const BATCH_ROWS: u64 = 4096;

/// A condition on a column of a file.
#[derive(Debug)]
pub(super) struct ColumnCheck {
    /// The column's position in the file.
    pub(super) column: usize,
    pub(super) shape: ValueShape,
    pub(super) test: ColumnTest,
}

/// A file that is being read.
pub(super) struct OpenParquetFile {
    handle: File,
    metadata: ArrowReaderMetadata,
    layout: Arc<ColumnLayout>,
    maker: Arc<BatchMaker>,
    checks: Vec<ColumnCheck>,
    /// Whether each row group may contain needed rows; empty if all do.
    of_use: Vec<bool>,
    next_group: usize,
    /// The rows of the groups before the next one.
    rows_passed: u64,
    /// The bytes of the groups before the next one.
    bytes_passed: u64,
}

impl OpenParquetFile {
    /// Opens a file to read these columns. Rows that do not satisfy a test on the column with it are left out
    /// where that is easy.
    pub(super) fn new(
        file: &TableFile,
        wanted: &Arc<RowLayout>,
        tests: &[(String, ColumnTest)],
    ) -> Result<Self, Problem> {
        let layout = Arc::clone(&file.layout);
        let columns: HashMap<_, _> = layout.names.iter().map(String::as_str).zip(0..).collect();
        let of_folders = |name: &str| file.partition.iter().find(|field| field.name == name);
        let maker = Arc::new(BatchMaker::new(file, wanted));
        let mut checks = Vec::new();
        // Whether no row of the file can be needed.
        let mut lacks_rows = false;
        for (name, test) in tests {
            if let Some(field) = of_folders(name) {
                lacks_rows |= test.applies_to(&field.shape()) && !test.holds_for(field);
                continue;
            }
            match columns.get(name.as_str()) {
                // A column that the file lacks is null in all its rows.
                None => lacks_rows = true,
                Some(column) => {
                    let shape = layout.shapes.get(*column).filter(|shape| test.applies_to(shape));
                    if let Some(shape) = shape.cloned() {
                        checks.push(ColumnCheck { column: *column, shape, test: test.clone() });
                    }
                }
            }
        }
        let handle = File::open(&file.path).map_err(|error| open_problem(&file.path, &error))?;
        let leaves: Vec<usize> = checks.iter().filter_map(|check| layout.leaf(check.column)).collect();
        let metadata = load_metadata(&handle, &layout, &leaves)
            .map_err(|error| problems::bad_footer(&file.name, error))?;
        let groups = metadata.metadata().row_groups();
        let rows: Decoded<u64> = groups.iter().map(group_row_count).sum();
        if rows.ok() != Some(file.rows) {
            return Err(problems::changed(&file.name));
        }
        let of_use = if lacks_rows {
            vec![false; groups.len()]
        } else if checks.is_empty() {
            Vec::new()
        } else {
            matching_groups(&metadata, &layout, &checks)
        };
        Ok(Self {
            handle,
            metadata,
            layout,
            maker,
            checks,
            of_use,
            next_group: 0,
            rows_passed: 0,
            bytes_passed: 0,
        })
    }

    /// How many rows of the file belong to row groups that were started or skipped.
    pub(super) fn rows_passed(&self) -> u64 {
        self.rows_passed
    }

    /// How many bytes of the file belong to row groups that were started or skipped.
    pub(super) fn bytes_passed(&self) -> u64 {
        self.bytes_passed
    }

    /// The next row group with needed rows.
    pub(super) fn next_group(&mut self) -> Decoded<Option<RowGroupReader>> {
        let metadata = Arc::clone(self.metadata.metadata());
        while let Some(described) = metadata.row_groups().get(self.next_group) {
            let index = self.next_group;
            let first = self.rows_passed;
            let rows = group_row_count(described)?;
            let bytes = u64::try_from(described.compressed_size()).unwrap_or(0);
            let of_use =
                self.of_use.get(index).copied().unwrap_or(true) && self.dictionaries_may_hold(described);
            let picked =
                if of_use && !self.checks.is_empty() { Some(self.pick(index, described)?) } else { None };
            self.next_group += 1;
            self.rows_passed += rows;
            self.bytes_passed += bytes;
            let count = picked.as_ref().map_or(rows, |picked| picked.true_count() as u64);
            if of_use && count > 0 {
                let row_bytes = decoded_bytes(described, |leaf| self.is_decoded(leaf)) / rows.max(1);
                let dense =
                    described.columns().iter().enumerate().any(|(leaf, column)| {
                        self.is_decoded(leaf) && column.column_descr().max_rep_level() > 0
                    });
                let found =
                    SelectedGroup { index, first, count, bytes, row_bytes: row_bytes.max(1), dense, picked };
                return Ok(Some(RowGroupReader::new(found)));
            }
        }
        Ok(None)
    }

    /// Whether the dictionaries of a group allow that it has needed rows. They only help: an unreadable one
    /// is reported when the group is read.
    fn dictionaries_may_hold(&self, group: &RowGroupMetaData) -> bool {
        self.checks.iter().all(|check| {
            let Some(leaf) = self.layout.leaf(check.column) else { return true };
            catch_decoder_panic(|| dictionary::may_hold(&self.handle, group, leaf, check)).unwrap_or(true)
        })
    }

    /// Starts to decode the rows of a group: all of them if it is dense, otherwise those that are to be
    /// returned, after the first `after`.
    pub(super) fn reader(&self, group: &SelectedGroup, after: u64) -> Decoded<BatchReader> {
        let rows = usize::try_from((BATCH_BYTES / group.row_bytes).clamp(1, BATCH_ROWS)).unwrap_or(1);
        let mut builder = self.builder(group.index, &self.maker.decoded, rows)?;
        if !group.dense {
            builder = builder.with_offset(usize::try_from(after).unwrap_or(usize::MAX));
            if let Some(picked) = &group.picked {
                let picked = RowSelection::from_boolean_buffer(picked.values().clone());
                builder = builder.with_row_selection(picked);
            }
        }
        let writing = match group.dense && group.picked.is_some() {
            true => WriteAhead::No,
            false => WriteAhead::Yes,
        };
        Ok(decode_ahead(catch_decoder_panic(|| builder.build())?, Arc::clone(&self.maker), writing))
    }

    /// Finds the rows of a group that satisfy the conditions, by the columns in these.
    fn pick(&self, group: usize, described: &RowGroupMetaData) -> Decoded<BooleanArray> {
        let mut columns: Vec<usize> = self.checks.iter().map(|check| check.column).collect();
        columns.sort_unstable();
        columns.dedup();
        let rows = group_row_count(described)?;
        let is_checked = |leaf| columns.binary_search(&self.layout.stored.get_column_root_idx(leaf)).is_ok();
        let row_bytes = (decoded_bytes(described, is_checked) / rows.max(1)).max(1);
        let batch = usize::try_from((BATCH_BYTES / row_bytes).clamp(1, 2 * BATCH_ROWS)).unwrap_or(1);
        let of_use = matching_rows(&self.metadata, &self.layout, &self.checks, group);
        let mut builder = self.builder(group, &columns, batch)?;
        let mut expected = rows;
        if let Some(of_use) = &of_use {
            expected = of_use.count_set_bits() as u64;
            builder = builder.with_row_selection(selection(of_use));
        }
        let mut reader = catch_decoder_panic(|| builder.build())?;
        let mut picked = BooleanBufferBuilder::new(0);
        while let Some(batch) = catch_decoder_panic(|| Ok(reader.next().transpose()?))? {
            let masks: Vec<BooleanArray> =
                self.checks.iter().filter_map(|check| mask(&batch, &columns, check)).collect();
            for row in 0..batch.num_rows() {
                picked.append(masks.iter().all(|mask| mask.is_valid(row) && mask.value(row)));
            }
            if picked.len() as u64 > expected {
                break;
            }
        }
        if picked.len() as u64 != expected {
            let found = picked.len();
            return Err(ParquetError::EOF(format!("a row group has {found} rows, expected {expected}")));
        }
        let picked = picked.finish();
        Ok(BooleanArray::new(of_use.map_or_else(|| picked.clone(), |of_use| spread(&of_use, &picked)), None))
    }

    fn builder(
        &self,
        group: usize,
        columns: &[usize],
        rows: usize,
    ) -> Decoded<ParquetRecordBatchReaderBuilder<File>> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied());
        let handle = self.handle.try_clone()?;
        Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(handle, self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(rows))
    }

    fn is_decoded(&self, leaf: usize) -> bool {
        self.maker.decoded.binary_search(&self.layout.stored.get_column_root_idx(leaf)).is_ok()
    }
}

/// Which rows of a batch of these columns satisfy one condition.
fn mask(batch: &RecordBatch, columns: &[usize], check: &ColumnCheck) -> Option<BooleanArray> {
    let place = columns.binary_search(&check.column).ok()?;
    check.test.check(&check.shape, batch.columns().get(place)?)
}

/// The selected rows, in the form that the decoder takes.
fn selection(rows: &BooleanBuffer) -> RowSelection {
    let mut selectors = Vec::new();
    let mut passed = 0;
    for (start, end) in rows.set_slices() {
        selectors.push(RowSelector::skip(start - passed));
        selectors.push(RowSelector::select(end - start));
        passed = end;
    }
    selectors.push(RowSelector::skip(rows.len() - passed));
    selectors.into()
}

/// The results for the selected rows, with `false` for all others.
fn spread(rows: &BooleanBuffer, found: &BooleanBuffer) -> BooleanBuffer {
    let mut spread = BooleanBufferBuilder::new(rows.len());
    let mut taken = 0;
    for (start, end) in rows.set_slices() {
        spread.append_n(start - spread.len(), false);
        spread.append_buffer(&found.slice(taken, end - start));
        taken += end - start;
    }
    spread.append_n(rows.len() - spread.len(), false);
    spread.finish()
}

/// The size of these leaves of a row group when decompressed, before decoding.
fn decoded_bytes(group: &RowGroupMetaData, is_counted: impl Fn(usize) -> bool) -> u64 {
    let counted = group.columns().iter().enumerate().filter(|(leaf, _)| is_counted(*leaf));
    counted.map(|(_, column)| u64::try_from(column.uncompressed_size()).unwrap_or(0)).sum()
}
