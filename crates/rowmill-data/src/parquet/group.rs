//! A row group that is being read.

use arrow_array::{BooleanArray, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::errors::{ParquetError, Result as Decoded};

use super::cells::Cells;
use super::file::OpenFile;
use super::problems::guarded;

/// Decodes the rows of one group, batch by batch.
pub(super) type Reader = ParquetRecordBatchReader;

/// From how many bytes on it is cheaper to look for a place again than to decode the way
/// to it.
const FAR: u64 = 16 << 20;

/// A row group that is being read. Nothing is decoded before a row is asked for.
pub(super) struct Group {
    pub(super) index: usize,
    /// How many bytes of the file it takes.
    pub(super) bytes: u64,
    /// How many bytes a row takes in the columns that are decoded.
    pub(super) row_bytes: u64,
    /// Which rows are to be given, where some are left out.
    pub(super) picked: Option<BooleanArray>,
    /// How many rows of the file come before it.
    first: u64,
    /// How many rows are to be given.
    count: u64,
    /// How many of them were given or skipped.
    passed: u64,
    /// How many rows of the group were passed, those among them that were left out.
    place: u64,
    reader: Option<Reader>,
    batch: Option<Batch>,
}

/// Rows that are decoded.
pub(super) struct Batch {
    /// The values of each wanted column, `None` where the file lacks it.
    pub(super) cells: Vec<Option<Cells>>,
    rows: usize,
    next: usize,
}

impl Batch {
    pub(super) fn new(cells: Vec<Option<Cells>>, rows: usize) -> Self {
        Self { cells, rows, next: 0 }
    }
}

impl Group {
    pub(super) fn new(
        index: usize,
        first: u64,
        count: u64,
        bytes: u64,
        row_bytes: u64,
        picked: Option<BooleanArray>,
    ) -> Self {
        Self { index, bytes, row_bytes, picked, first, count, passed: 0, place: 0, reader: None, batch: None }
    }

    /// How many bytes of the file are still to come, roughly.
    pub(super) fn bytes_left(&self) -> u64 {
        let left =
            u128::from(self.bytes) * u128::from(self.count - self.passed) / u128::from(self.count.max(1));
        u64::try_from(left).unwrap_or(self.bytes)
    }

    /// How many rows of the file were passed.
    pub(super) fn place_in_file(&self) -> u64 {
        self.first + self.place
    }

    /// The next row: the batch that holds it, its place there, and its place in the file.
    pub(super) fn next(&mut self, file: &OpenFile) -> Decoded<Option<(&Batch, usize, u64)>> {
        if self.passed == self.count {
            self.finish()?;
            return Ok(None);
        }
        if self.batch.as_ref().is_none_or(|batch| batch.next == batch.rows) {
            let decoded = self.decode(file)?;
            self.batch = Some(file.cells(&decoded)?);
        }
        let place = self.next_place();
        self.place = place + 1;
        self.passed += 1;
        let place_in_file = self.first + place;
        Ok(self.batch.as_mut().map(|batch| {
            let at = batch.next;
            batch.next += 1;
            (&*batch, at, place_in_file)
        }))
    }

    /// Passes over up to `rows` rows, and says how many there were.
    pub(super) fn skip(&mut self, rows: u64, file: &OpenFile) -> Decoded<u64> {
        let wanted = rows.min(self.count - self.passed);
        let mut left = wanted;
        if let Some(batch) = &mut self.batch {
            let near = left.min((batch.rows - batch.next) as u64);
            batch.next += near as usize;
            left -= near;
        }
        let ends = self.passed + wanted == self.count;
        if left > 0 && self.reader.is_some() && !ends && left.saturating_mul(self.row_bytes) < FAR {
            while left > 0 {
                let decoded = self.decode(file)?;
                let near = left.min(decoded.num_rows() as u64);
                left -= near;
                if near < decoded.num_rows() as u64 {
                    let mut batch = file.cells(&decoded)?;
                    batch.next = near as usize;
                    self.batch = Some(batch);
                } else {
                    self.batch = None;
                }
            }
        } else if left > 0 {
            self.batch = None;
            self.reader = None;
        }
        for _ in 0..if self.picked.is_some() { wanted } else { 0 } {
            self.place = self.next_place() + 1;
        }
        self.passed += wanted;
        if self.picked.is_none() {
            self.place = self.passed;
        }
        Ok(wanted)
    }

    /// Where in the group the next row that is to be given stands.
    fn next_place(&self) -> u64 {
        let Some(picked) = &self.picked else { return self.place };
        let from = usize::try_from(self.place).unwrap_or(usize::MAX);
        (from..picked.len()).find(|at| picked.value(*at)).unwrap_or(from) as u64
    }

    fn decode(&mut self, file: &OpenFile) -> Decoded<RecordBatch> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => {
                let reader = file.reader(self, self.passed)?;
                self.reader.insert(reader)
            }
        };
        let decoded = guarded(|| Ok(reader.next().transpose()?))?;
        // A file that ends early must not pass for a shorter one.
        decoded.ok_or_else(|| {
            let (count, place) = (self.count, self.passed);
            ParquetError::EOF(format!("a row group ends after {place} of {count} rows"))
        })
    }

    /// Makes sure that there are no more rows than the footer says.
    fn finish(&mut self) -> Decoded<()> {
        let Some(mut reader) = self.reader.take() else { return Ok(()) };
        match guarded(|| Ok(reader.next().transpose()?))? {
            None => Ok(()),
            Some(_) => {
                let count = self.count;
                Err(ParquetError::General(format!("a row group has more than the {count} rows announced")))
            }
        }
    }
}
