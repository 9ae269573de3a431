//! A row group that is being read.

use arrow_array::BooleanArray;
use parquet::errors::{ParquetError, Result as Decoded};

use super::ahead::BatchReader;
use super::batch::Batch;
use super::file::OpenFile;

/// From how many bytes on it is cheaper to look for a place again than to decode the way
/// to it.
const FAR: u64 = 16 << 20;

/// A row group with rows of use.
pub(super) struct Found {
    pub(super) index: usize,
    /// How many rows of the file come before it.
    pub(super) first: u64,
    /// How many rows are to be given.
    pub(super) count: u64,
    /// How many bytes of the file it takes.
    pub(super) bytes: u64,
    /// How many bytes a row takes in the columns that are decoded.
    pub(super) row_bytes: u64,
    /// Whether rows that are not wanted are decoded all the same. With lists among the
    /// columns they are: the decoder's own way of passing over lists does not come to an end
    /// where a page is damaged.
    pub(super) dense: bool,
    /// Which rows are to be given, where some are left out.
    pub(super) picked: Option<BooleanArray>,
}

/// A row group that is being read. Nothing is decoded before a row is asked for.
pub(super) struct Group {
    found: Found,
    /// How many of the rows that are to be given were given or skipped.
    passed: u64,
    /// How many rows of the group were passed, those among them that were left out.
    place: u64,
    /// How many of the rows that are decoded were passed.
    cursor: u64,
    reader: Option<BatchReader>,
    batch: Option<Batch>,
    /// How many rows of the batch were passed.
    next: usize,
}

/// Rows that follow on one another, in the file and among those that are decoded.
pub(super) struct RowRun<'b> {
    pub(super) batch: &'b Batch,
    /// The place of the first one in the batch.
    pub(super) at: usize,
    /// How many there are.
    pub(super) rows: usize,
    /// How many rows of the file come before them.
    pub(super) place: u64,
}

impl Group {
    pub(super) fn new(found: Found) -> Self {
        Self { found, passed: 0, place: 0, cursor: 0, reader: None, batch: None, next: 0 }
    }

    /// How many bytes of the file are still to come, roughly.
    pub(super) fn bytes_left(&self) -> u64 {
        let Found { bytes, count, .. } = self.found;
        let left = u128::from(bytes) * u128::from(count - self.passed) / u128::from(count.max(1));
        u64::try_from(left).unwrap_or(bytes)
    }

    /// How many rows of the file were passed.
    pub(super) fn place_in_file(&self) -> u64 {
        self.found.first + self.place
    }

    /// The next rows, at most so many; the first of them is there to be taken until [`pass`] is called.
    ///
    /// [`pass`]: Self::pass
    pub(super) fn next_run(&mut self, most: usize, file: &OpenFile) -> Decoded<Option<RowRun<'_>>> {
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

    /// Counts the first rows of the last run as given.
    pub(super) fn pass(&mut self, rows: usize) {
        self.place += rows as u64;
        self.passed += rows as u64;
        self.cursor += rows as u64;
        self.next += rows;
    }

    /// Passes over up to `rows` rows, and says how many there were.
    pub(super) fn skip(&mut self, rows: u64, file: &OpenFile) -> Decoded<u64> {
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

    /// Passes over rows of those that are decoded.
    fn advance(&mut self, rows: u64, file: &OpenFile) -> Decoded<()> {
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

    /// Where in the group the first row from `place` on stands that is to be given.
    fn next_place(&self, place: u64) -> u64 {
        let Some(picked) = &self.found.picked else { return place };
        let from = usize::try_from(place).unwrap_or(usize::MAX);
        (from..picked.len()).find(|at| picked.value(*at)).unwrap_or(from) as u64
    }

    /// How many rows from `place` on are to be given before one is left out, at most so many.
    fn picked_rows(&self, place: u64, most: usize) -> usize {
        let Some(picked) = &self.found.picked else { return most };
        let from = usize::try_from(place).unwrap_or(usize::MAX);
        let to = from.saturating_add(most).min(picked.len());
        (from..to).find(|at| !picked.value(*at)).unwrap_or(to).saturating_sub(from)
    }

    fn decode(&mut self, file: &OpenFile) -> Decoded<Batch> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => self.reader.insert(file.reader(&self.found, self.cursor)?),
        };
        let decoded = reader.next()?;
        // A file that ends early must not pass for a shorter one.
        decoded.ok_or_else(|| {
            let (passed, count) = (self.passed, self.found.count);
            ParquetError::EOF(format!("a row group ends after {passed} of {count} rows"))
        })
    }

    /// Makes sure that there are no more rows than the footer says.
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
