//! Makes rows from the decoded columns of one file after the other.

use std::sync::Arc;

use parquet::errors::ParquetError;
use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{Problem, RowReadResult};

use super::conditions::ColumnTest;
use super::encryption::has_encrypted_columns;
use super::file::OpenParquetFile;
use super::group::RowGroupReader;
use super::problems;
use super::row_writer::{ParquetRowWriter, WrittenRows};
use super::table::ParquetTable;

/// Reads the rows of all files in order.
pub(super) struct ParquetRowSource {
    table: Arc<ParquetTable>,
    writer: ParquetRowWriter,
    tests: Vec<(String, ColumnTest)>,
    /// The index of the current or next file.
    file: usize,
    open: Option<OpenParquetFile>,
    group: Option<RowGroupReader>,
    /// The number of rows of the previous files.
    rows_before: u64,
    /// The number of bytes of the previous files.
    bytes_before: u64,
    /// The problem that ended the read: a decoder that has failed is not called again.
    failed: Option<Problem>,
}

impl ParquetRowSource {
    /// Reads these columns of the table.
    pub(super) fn new(table: Arc<ParquetTable>, columns: &[usize], tests: Vec<(String, ColumnTest)>) -> Self {
        let names = columns.iter().filter_map(|column| table.columns.get(*column));
        let writer = ParquetRowWriter::new(names.map(|column| column.name.as_str()));
        Self {
            table,
            writer,
            tests,
            file: 0,
            open: None,
            group: None,
            rows_before: 0,
            bytes_before: 0,
            failed: None,
        }
    }

    /// Moves to the next group with needed rows; `false` if there is none.
    fn advance(&mut self) -> Result<bool, Problem> {
        let table = Arc::clone(&self.table);
        while let Some(file) = table.files.get(self.file) {
            let open = match &mut self.open {
                Some(open) => open,
                None => self.open.insert(OpenParquetFile::new(file, &self.writer.columns, &self.tests)?),
            };
            match open.next_group() {
                Ok(Some(group)) => {
                    self.group = Some(group);
                    return Ok(true);
                }
                Ok(None) => self.pass_file(file.rows, file.size),
                Err(error) => return Err(self.stopped(&error)),
            }
        }
        Ok(false)
    }

    fn pass_file(&mut self, rows: u64, size: u64) {
        self.open = None;
        self.file += 1;
        self.rows_before += rows;
        self.bytes_before += size;
    }

    /// Appends the next rows: at least one if there is one, and no more than there is room for.
    fn next_rows(
        &mut self,
        out: &mut Vec<RowReadResult>,
        room: ReadLimit,
    ) -> Result<Option<WrittenRows>, Problem> {
        loop {
            if let (Some(group), Some(open)) = (&mut self.group, &self.open) {
                match group.next_run(room.rows.max(1), open) {
                    Ok(Some(run)) => {
                        let written = self.writer.write_rows(&run, self.rows_before, room, out);
                        group.pass(written.rows);
                        return Ok(Some(written));
                    }
                    Ok(None) => self.group = None,
                    Err(error) => return Err(self.stopped(&error)),
                }
            } else if !self.advance()? {
                return Ok(None);
            }
        }
    }

    fn skip_rows(&mut self, rows: u64) -> Result<u64, Problem> {
        let mut left = rows;
        while left > 0 {
            if let (Some(group), Some(open)) = (&mut self.group, &self.open) {
                match group.skip(left, open) {
                    Ok(0) => self.group = None,
                    Ok(passed) => left -= passed,
                    Err(error) => return Err(self.stopped(&error)),
                }
                continue;
            }
            let whole_file = match self.table.files.get(self.file) {
                Some(file) if self.open.is_none() && self.tests.is_empty() && file.rows <= left => {
                    Some((file.rows, file.size))
                }
                _ => None,
            };
            if let Some((rows, size)) = whole_file {
                self.pass_file(rows, size);
                left -= rows;
            } else if !self.advance()? {
                break;
            }
        }
        Ok(rows - left)
    }

    fn stopped(&self, error: &ParquetError) -> Problem {
        let file = self.table.files.get(self.file);
        let name = file.map_or("", |file| file.name.as_str());
        if file.is_some_and(|file| has_encrypted_columns(&file.path)) {
            return problems::encrypted_columns(name);
        }
        let taken_up = self.open.as_ref().map_or(0, OpenParquetFile::rows_passed);
        let place = self.group.as_ref().map_or(taken_up, RowGroupReader::place_in_file);
        problems::stopped(name, self.rows_before + place, error)
    }

    /// Runs a step unless an earlier one failed.
    fn step<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, Problem>) -> Result<T, Problem> {
        if let Some(problem) = &self.failed {
            return Err(problem.clone());
        }
        let result = step(self);
        if let Err(problem) = &result {
            self.failed = Some(problem.clone());
            self.group = None;
            self.open = None;
        }
        result
    }
}

impl RowSource for ParquetRowSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        self.step(|source| {
            let mut left = room;
            while let Some(written) = source.next_rows(batch, left)? {
                if written.rows >= left.rows || written.bytes >= left.bytes {
                    return Ok(true);
                }
                left.rows -= written.rows;
                left.bytes -= written.bytes;
            }
            Ok(false)
        })
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        self.step(|source| source.skip_rows(rows))
    }

    fn position(&self) -> InputReadProgress {
        let total = self.table.files.iter().map(|file| file.size).sum();
        let passed = self.open.as_ref().map_or(0, OpenParquetFile::bytes_passed);
        let left = self.group.as_ref().map_or(0, RowGroupReader::bytes_left);
        InputReadProgress {
            read: (self.bytes_before + passed.saturating_sub(left)).min(total),
            total: Some(total),
        }
    }
}
