//! A row group that is being read.

use arrow_array::BooleanArray;
use parquet::errors::{ParquetError, Result as Decoded};

use super::batch::DecodedBatch;
use super::decode_ahead::BatchReader;
use super::file::OpenParquetFile;

/// From this many bytes on, it is cheaper to seek again than to decode everything up to the position.
const FAR: u64 = 16 << 20;

/// A row group with needed rows.
pub(super) struct SelectedGroup {
    pub(super) index: usize,
    /// The number of rows in the file before it.
    pub(super) first: u64,
    /// The number of rows to return.
    pub(super) count: u64,
    /// Its size in the file, in bytes.
    pub(super) bytes: u64,
    /// The size of a row in the decoded columns, in bytes.
    pub(super) row_bytes: u64,
    /// Whether rows that are not wanted are decoded anyway. This is necessary if the columns include lists:
    /// the decoder does not terminate when it skips lists in a damaged page.
    pub(super) dense: bool,
    /// Which rows to return, if some are left out.
    pub(super) picked: Option<BooleanArray>,
}

/// A row group that is being read. Nothing is decoded before a row is requested.
pub(super) struct RowGroupReader {
    found: SelectedGroup,
    /// How many of the rows to return were returned or skipped.
    passed: u64,
    /// The current position in the group, counting rows that were left out.
    place: u64,
    /// The current position among the decoded rows.
    cursor: u64,
    reader: Option<BatchReader>,
    batch: Option<DecodedBatch>,
    /// The current position in the batch.
    next: usize,
}

/// Rows that are consecutive, both in the file and among the decoded ones.
pub(super) struct RowRun<'b> {
    pub(super) batch: &'b DecodedBatch,
    /// The position of the first one in the batch.
    pub(super) at: usize,
    /// The number of rows.
    pub(super) rows: usize,
    /// The number of rows in the file before them.
    pub(super) place: u64,
}

impl RowGroupReader {
    pub(super) fn new(found: SelectedGroup) -> Self {
        Self { found, passed: 0, place: 0, cursor: 0, reader: None, batch: None, next: 0 }
    }

    /// Roughly how many bytes of the file are still to be read.
    pub(super) fn bytes_left(&self) -> u64 {
        let SelectedGroup { bytes, count, .. } = self.found;
        let left = u128::from(bytes) * u128::from(count - self.passed) / u128::from(count.max(1));
        u64::try_from(left).unwrap_or(bytes)
    }

    /// The current position in the file, in rows.
    pub(super) fn place_in_file(&self) -> u64 {
        self.found.first + self.place
    }

    /// The next rows, at most `most`; the same rows are returned again until [`pass`] is called.
    ///
    /// [`pass`]: Self::pass
    pub(super) fn next_run(&mut self, most: usize, file: &OpenParquetFile) -> Decoded<Option<RowRun<'_>>> {
        if self.passed == self.found.count {
            self.finish()?;
            return Ok(None);
        }
        let place = self.next_place(self.place);
        if self.found.dense {
            self.advance(place - self.place, file)?;
        }
        if self.batch.as_ref().is_none_or(|batch| self.next == batch.rows) {
            self.batch = Some(self.decode(file)?);
            self.next = 0;
        }
        self.place = place;
        let left = usize::try_from(self.found.count - self.passed).unwrap_or(usize::MAX);
        let most = self.picked_rows(place, most.min(left));
        let place = self.found.first + place;
        let at = self.next;
        Ok(self.batch.as_ref().map(|batch| RowRun { batch, at, rows: batch.rows_at_once(at, most), place }))
    }

    /// Marks the first rows of the last run as returned.
    pub(super) fn pass(&mut self, rows: usize) {
        self.place += rows as u64;
        self.passed += rows as u64;
        self.cursor += rows as u64;
        self.next += rows;
    }

    /// Skips up to `rows` rows, and returns how many there were.
    pub(super) fn skip(&mut self, rows: u64, file: &OpenParquetFile) -> Decoded<u64> {
        let wanted = rows.min(self.found.count - self.passed);
        let mut place = self.place;
        if self.found.picked.is_some() {
            for _ in 0..wanted {
                place = self.next_place(place) + 1;
            }
        } else {
            place += wanted;
        }
        if self.passed + wanted == self.found.count {
            self.reader = None;
            self.batch = None;
        } else {
            self.advance(if self.found.dense { place - self.place } else { wanted }, file)?;
        }
        self.place = place;
        self.passed += wanted;
        Ok(wanted)
    }

    /// Skips decoded rows.
    fn advance(&mut self, rows: u64, file: &OpenParquetFile) -> Decoded<()> {
        let mut left = rows;
        if let Some(batch) = &self.batch {
            let near = left.min((batch.rows - self.next) as u64);
            self.next += near as usize;
            left -= near;
        }
        self.cursor += rows;
        if left == 0 {
            return Ok(());
        }
        self.batch = None;
        let is_far = left.saturating_mul(self.found.row_bytes) >= FAR;
        if !self.found.dense && (is_far || self.reader.is_none()) {
            self.reader = None;
            return Ok(());
        }
        while left > 0 {
            let batch = self.decode(file)?;
            let near = left.min(batch.rows as u64);
            left -= near;
            if near < batch.rows as u64 {
                self.next = near as usize;
                self.batch = Some(batch);
            }
        }
        Ok(())
    }

    /// The position in the group of the first row to return, from `place` on.
    fn next_place(&self, place: u64) -> u64 {
        let Some(picked) = &self.found.picked else { return place };
        let from = usize::try_from(place).unwrap_or(usize::MAX);
        (from..picked.len()).find(|at| picked.value(*at)).unwrap_or(from) as u64
    }

    /// How many rows from `place` on are to be returned before one is left out, at most `most`.
    fn picked_rows(&self, place: u64, most: usize) -> usize {
        let Some(picked) = &self.found.picked else { return most };
        let from = usize::try_from(place).unwrap_or(usize::MAX);
        let to = from.saturating_add(most).min(picked.len());
        (from..to).find(|at| !picked.value(*at)).unwrap_or(to).saturating_sub(from)
    }

    fn decode(&mut self, file: &OpenParquetFile) -> Decoded<DecodedBatch> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => self.reader.insert(file.reader(&self.found, self.cursor)?),
        };
        let decoded = reader.next()?;
        // A file that ends early must not be mistaken for a shorter one.
        decoded.ok_or_else(|| {
            let (passed, count) = (self.passed, self.found.count);
            ParquetError::EOF(format!("a row group ends after {passed} of {count} rows"))
        })
    }

    /// Checks that there are no more rows than the footer declares.
    fn finish(&mut self) -> Decoded<()> {
        let Some(mut reader) = self.reader.take() else { return Ok(()) };
        if self.found.dense && self.found.picked.is_some() {
            return Ok(());
        }
        match reader.next()? {
            None => Ok(()),
            Some(_) => {
                let count = self.found.count;
                Err(ParquetError::General(format!("a row group has more than the announced {count} rows")))
            }
        }
    }
}
