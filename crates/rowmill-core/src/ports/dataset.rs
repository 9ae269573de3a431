//! Input ports: datasets, their rows, and the files that belong to rows.

use std::fmt::Debug;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rowmill_types::{
    Attachment, ComparisonOperator, ComparisonValue, DiagnosticText, Problem, Row, RowError, RowReadResult,
};
use serde::{Deserialize, Serialize};

/// A source of rows; can be opened again unless it is a stream.
pub trait Dataset: Send + Sync + Debug {
    /// Starts a read from the first row.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn open(&self) -> Result<Box<dyn RowSource>, Problem>;

    /// Whether [`Dataset::open`] works more than once with the same rows.
    fn is_rereadable(&self) -> bool;

    /// Identifies the input, for the fingerprint of the run.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn identity(&self) -> Result<InputIdentity, Problem>;

    /// Starts a read of a part of the dataset.
    ///
    /// A dataset that cannot filter returns everything: the caller must filter again. Row numbers are the same as in a
    /// read of the whole.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read, or has no such column.
    fn open_part(&self, _part: &RequestedDatasetPart) -> Result<Box<dyn RowSource>, Problem> {
        self.open()
    }

    /// The number of rows, if it is known without reading them.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn count(&self) -> Result<Option<u64>, Problem> {
        Ok(None)
    }

    /// The columns, if the input declares them with their types.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn columns(&self) -> Result<Option<Vec<DatasetColumn>>, Problem> {
        Ok(None)
    }

    /// The DuckDB types of those columns, in the same order, if they are more precise than the column kinds.
    ///
    /// # Errors
    ///
    /// The types cannot be read.
    fn sql_types(&self) -> Result<Option<Vec<String>>, Problem> {
        Ok(None)
    }

    /// The field that identifies rows if the user names none. The dataset guarantees that every row has it and that no
    /// two rows share a value.
    fn default_id_field(&self) -> Option<&str> {
        None
    }

    /// A notice for the user about the reads so far, such as copies that were left out.
    fn read_notice(&self) -> Option<DiagnosticText> {
        None
    }

    /// Whether all values are text because the format has no other type, as in CSV.
    fn is_untyped(&self) -> bool {
        false
    }
}

/// The part of a dataset that the caller needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestedDatasetPart {
    /// The columns to read, in the order of the input; `None` means all.
    pub columns: Option<Vec<String>>,
    /// Rows that violate one of these may be left out.
    pub conditions: Vec<ColumnCondition>,
}

/// A comparison of a column with a value. Null satisfies none.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnCondition {
    /// The column.
    pub column: String,
    /// The operator.
    pub comparison: ComparisonOperator,
    /// The value to compare with.
    pub value: ComparisonValue,
}

/// A column that the input declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetColumn {
    /// Its name.
    pub name: String,
    /// The kind of its values.
    pub kind: ColumnKind,
}

/// The kind of values in a column, as far as SQL and users need to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text, and everything that is returned as text: dates, times, bytes.
    Text,
    /// Whole numbers.
    Integer,
    /// Other numbers.
    Real,
    /// Decimal numbers with this precision and scale, returned as text.
    Decimal(u8, i8),
    /// `true` and `false`.
    Boolean,
    /// Lists and objects.
    Nested,
    /// Any kind of value.
    Mixed,
}

/// Reads rows in input order. Blocks, and does not read further ahead than requested. The engine lends it a thread for
/// each read, not always the same one.
pub trait RowSource: Send {
    /// Appends rows to `batch` until `room` is used up; `false` once the input has ended, and on every later call.
    ///
    /// Row numbers start at 1 or later and increase; there may be gaps. A record that is not a valid row is appended as
    /// a bad row, and reading continues after it.
    ///
    /// # Errors
    ///
    /// The input cannot be read any further.
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem>;

    /// Skips up to `rows` rows, including bad rows; returns how many were skipped.
    ///
    /// Fewer than `rows` means that the input has ended.
    ///
    /// # Errors
    ///
    /// The input cannot be read any further.
    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        let mut passed = 0;
        let mut batch = Vec::new();
        while passed < rows {
            let most = usize::try_from(rows - passed).unwrap_or(usize::MAX).min(1024);
            let more = self.read(&mut batch, ReadLimit { rows: most, bytes: usize::MAX })?;
            passed += batch.len() as u64;
            batch.clear();
            if !more {
                break;
            }
        }
        Ok(passed)
    }

    /// Why the rest of a file cannot be read, once a single bad row stands for that rest. A caller that needs every row
    /// must not continue then.
    fn damage(&self) -> Option<Problem> {
        None
    }

    /// Ready when a read would return rows or the end of the input at once. A source that waits for another party wakes
    /// its reader here, so that no thread is held while it waits.
    ///
    /// Must not block. A source that only ever waits for a disk is always ready.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// How far the read has progressed.
    fn position(&self) -> InputReadProgress;
}

impl<S: RowSource + ?Sized> RowSource for Box<S> {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        (**self).read(batch, room)
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        (**self).skip(rows)
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        (**self).poll_ready(context)
    }

    fn damage(&self) -> Option<Problem> {
        (**self).damage()
    }

    fn position(&self) -> InputReadProgress {
        (**self).position()
    }
}

/// Loads the files that belong to a row.
pub trait AttachmentLoader: Send + Sync + Debug {
    /// The files of a row in the order in which they are sent. An error fails the row: a row is never sent without a
    /// file that belongs to it.
    ///
    /// Waits while too much is held in memory already; the memory is released when the bytes are dropped.
    fn load<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Vec<Attachment>, RowError>>;
}

/// How much one [`RowSource::read`] may append. At least one row is always appended.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimit {
    /// The maximum number of rows.
    pub rows: usize,
    /// Stop once the text of the rows takes this many bytes.
    pub bytes: usize,
}

/// The progress of a read, for progress display and remaining time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputReadProgress {
    /// Bytes read so far.
    pub read: u64,
    /// Total bytes, if known.
    pub total: Option<u64>,
}

/// Identifies an input, so that a resume can detect that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputIdentity {
    /// The absolute path, or `-` for standard input.
    pub path: String,
    /// The size in bytes, if it is a file.
    pub size: Option<u64>,
    /// A digest of the first and the last 64 KiB, if it is a file.
    pub probe: Option<String>,
}
