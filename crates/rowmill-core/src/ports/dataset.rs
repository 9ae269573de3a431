//! Ports for what goes in: datasets, their rows, and the files that belong to rows.

use std::fmt::Debug;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rowmill_types::{Attachment, Comparison, Problem, Row, RowError, Scalar, SourceRow, Words};
use serde::{Deserialize, Serialize};

/// Where rows come from; can be opened again unless it is a stream.
pub trait Dataset: Send + Sync + Debug {
    /// Starts a read from the first row.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn open(&self) -> Result<Box<dyn RowSource>, Problem>;

    /// Whether [`Dataset::open`] works more than once with the same rows.
    fn rereadable(&self) -> bool;

    /// What the input is, for the fingerprint of the run.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn identity(&self) -> Result<InputIdentity, Problem>;

    /// Starts a read of a part of it.
    ///
    /// A dataset that cannot leave anything out gives everything: whoever asks looks again.
    /// Row numbers are the same as in a read of the whole.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read, or has no such column.
    fn open_part(&self, _part: &Part) -> Result<Box<dyn RowSource>, Problem> {
        self.open()
    }

    /// How many rows there are, where that is known without reading them.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn count(&self) -> Result<Option<u64>, Problem> {
        Ok(None)
    }

    /// The columns, where the input declares them with their types.
    ///
    /// # Errors
    ///
    /// The input is missing or cannot be read.
    fn columns(&self) -> Result<Option<Vec<Column>>, Problem> {
        Ok(None)
    }

    /// The types of those columns as DuckDB names them, in the same order, where it knows more of
    /// them than their kinds.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn sql_types(&self) -> Result<Option<Vec<String>>, Problem> {
        Ok(None)
    }

    /// The field that names rows where the user names none. The dataset vouches for it: every
    /// row has it, and no two rows have the same.
    fn own_id(&self) -> Option<&str> {
        None
    }

    /// What a person should know about the reads so far, such as copies that were left out.
    fn notice(&self) -> Option<Words> {
        None
    }

    /// Whether all values are text because the format knows nothing else, as in CSV.
    fn untyped(&self) -> bool {
        false
    }
}

/// The part of a dataset that somebody has a use for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    /// The columns that are looked at, in the order of the input; all without it.
    pub columns: Option<Vec<String>>,
    /// Rows that break one of these may be left out.
    pub conditions: Vec<Condition>,
}

/// A comparison of a column with a value. Null satisfies none.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The column.
    pub column: String,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub value: Scalar,
}

/// A column that an input declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
}

/// What the values of a column are, as far as SQL and people care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text, and whatever is given as text: dates, times, bytes.
    Text,
    /// Whole numbers.
    Integer,
    /// Other numbers.
    Real,
    /// Decimal numbers with this many digits in all and after the point, given as text.
    Decimal(u8, i8),
    /// `true` and `false`.
    Boolean,
    /// Lists and objects.
    Nested,
    /// Anything.
    Mixed,
}

/// Reads rows in input order, in blocking code, without reading ahead more than
/// it is asked for. The engine gives it a thread while it reads, not always the same one.
pub trait RowSource: Send {
    /// Appends rows to `batch` until `room` is used up; `false` once the input has ended, and
    /// from then on each time.
    ///
    /// Row numbers begin at 1 or later and grow from row to row; there may be gaps.
    /// A record that is no row is appended as a bad row, and reading continues after it.
    ///
    /// # Errors
    ///
    /// The input cannot be read any further.
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem>;

    /// Skips up to `rows` rows, bad rows among them; says how many there were.
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
            let more = self.read(&mut batch, Room { rows: most, bytes: usize::MAX })?;
            passed += batch.len() as u64;
            batch.clear();
            if !more {
                break;
            }
        }
        Ok(passed)
    }

    /// Why the rest of a file cannot be read, once a bad row stands for that rest. Who needs every row
    /// must not continue then.
    fn damage(&self) -> Option<Problem> {
        None
    }

    /// Whether a read would find something now, or find that the input has ended. One that waits for
    /// somebody else has its reader called here again, so that nobody holds a thread meanwhile.
    ///
    /// It must not block. What has nothing to wait for but a disk is always ready.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// How far the read has come.
    fn position(&self) -> Position;
}

impl<S: RowSource + ?Sized> RowSource for Box<S> {
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem> {
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

    fn position(&self) -> Position {
        (**self).position()
    }
}

/// Brings the files that go with a row.
pub trait Attachments: Send + Sync + Debug {
    /// The files of a row in the order in which they are sent. The error is the row's
    /// failure: a row is never sent without a file that belongs to it.
    ///
    /// Waits while too much is held in memory already; what is held is given back when the
    /// bytes are dropped.
    fn load<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Vec<Attachment>, RowError>>;
}

/// How much one [`RowSource::read`] may append. At least one row is always appended.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// At most this many rows.
    pub rows: usize,
    /// Stop once the rows' text takes this many bytes.
    pub bytes: usize,
}

/// How far a read has come, for progress and time left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes read so far.
    pub read: u64,
    /// Bytes there are in all, where known.
    pub total: Option<u64>,
}

/// What an input is, so that a resume can tell that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputIdentity {
    /// The absolute path, or `-` for standard input.
    pub path: String,
    /// The size in bytes, where it is a file.
    pub size: Option<u64>,
    /// A digest of the first and the last 64 KiB, where it is a file.
    pub probe: Option<String>,
}
