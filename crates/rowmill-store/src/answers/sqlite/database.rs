//! The database file of answers: its tables, and all reads and writes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rowmill_core::ports::{AnswerKey, StoredAnswer};
use rowmill_types::{Problem, ProblemCode, TokenUsage, private_file_options};
use rusqlite::{
    Connection, Error, ErrorCode, OpenFlags, OptionalExtension, Row, Statement, TransactionBehavior, params,
};

/// The application id in the header of the file: `RMil`.
const APPLICATION: i32 = 0x524d_696c;

/// The length of a database header.
pub(super) const HEADER_BYTES: u64 = 100;

/// The position of the application id in the header.
const APPLICATION_AT: std::ops::Range<usize> = 68..72;

/// The format of the tables. A version that does not know the format does not touch the file.
const FORMAT: i32 = 1;

/// How long one attempt to write waits for another process. It is short because look-ups wait behind it; a failed write
/// is retried.
const TRY: Duration = Duration::from_millis(50);

/// How long commands wait for another process before they give up.
const PATIENCE: Duration = Duration::from_secs(30);

/// With pages of the default 4 KiB, an answer of 2 KB would fill a page alone.
pub(super) const PAGE_BYTES: u64 = 8192;

/// Keys have an index of their own, because answers in the index would spread it over the whole file. Hits have a table
/// of their own, because recording one would otherwise rewrite the whole answer. The text is the last column, so that
/// statistics are read without it.
const TABLES: &str = "CREATE TABLE answers (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    input INTEGER,
    cached INTEGER,
    cache_write INTEGER,
    output INTEGER,
    reasoning INTEGER,
    model TEXT,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE uses (
    id INTEGER PRIMARY KEY,
    last_used_at INTEGER NOT NULL,
    times INTEGER NOT NULL
) STRICT";

const FIND: &str =
    "SELECT text, model, input, cached, cache_write, output, reasoning FROM answers WHERE key = ?1";

const KEEP: &str = "INSERT INTO answers (key, created_at, bytes,
        input, cached, cache_write, output, reasoning, model, text)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT (key) DO UPDATE SET created_at = excluded.created_at, bytes = excluded.bytes,
        input = excluded.input, cached = excluded.cached, cache_write = excluded.cache_write,
        output = excluded.output, reasoning = excluded.reasoning,
        model = excluded.model, text = excluded.text";

const ADD: &str = "INSERT INTO answers (key, created_at, bytes,
        input, cached, cache_write, output, reasoning, model, text)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT (key) DO NOTHING";

const TOUCH: &str = "INSERT INTO uses (id, last_used_at, times)
    SELECT id, ?3, ?2 FROM answers WHERE key = ?1
    ON CONFLICT (id) DO UPDATE SET times = times + excluded.times,
        last_used_at = max(last_used_at, excluded.last_used_at)";

/// The content of one transaction.
#[derive(Debug, Default)]
pub(super) struct WriteBatch {
    /// Answers to be stored.
    pub(super) answers: Vec<(AnswerKey, Arc<StoredAnswer>)>,
    /// How often each answer was found since the last batch.
    pub(super) hits: HashMap<AnswerKey, u64>,
}

/// Whether the header of a database marks it as a store of answers.
pub(super) fn has_application_id(file: &[u8]) -> bool {
    file.get(APPLICATION_AT) == Some(&APPLICATION.to_be_bytes())
}

/// An open database of answers.
#[derive(Debug)]
pub(super) struct AnswerDatabase {
    pub(super) connection: Connection,
}

impl AnswerDatabase {
    /// Opens the file, and creates it if it is missing.
    pub(super) fn open(path: &Path) -> Result<Self, Problem> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // SQLite would create it with the permissions of the umask; its other files inherit the permissions of this
        // one. If the file cannot be created here, SQLite reports it.
        drop(private_file_options().append(true).create(true).open(path));
        let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
            connection.busy_timeout(PATIENCE)?;
            let known = prepare(&connection)?;
            connection.busy_timeout(TRY)?;
            Ok((Self { connection }, known))
        });
        match opened {
            Ok((database, HeaderMarks::OURS)) => Ok(database),
            Ok((_, HeaderMarks { application: APPLICATION, format, .. })) => Err(unusable_store_problem(
                path,
                &format!("has format {format}, but this version reads and writes {FORMAT}"),
            )),
            Ok(_) => Err(unusable_store_problem(path, "is a database, but not an answer cache")),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                Err(unusable_store_problem(path, "is not an answer cache").cause(error))
            }
            Err(error) => Err(unusable_store_problem(path, "cannot be opened").cause(error)),
        }
    }

    /// The answer under a key.
    pub(super) fn find(&self, key: AnswerKey) -> Result<Option<StoredAnswer>, Error> {
        let mut statement = self.connection.prepare_cached(FIND)?;
        statement.query_row([key.0.to_be_bytes()], kept_answer).optional()
    }

    /// Writes a batch in one transaction: all of it, or nothing on failure.
    pub(super) fn write(&mut self, batch: &WriteBatch) -> Result<(), Error> {
        let now = unix_seconds();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut keep = transaction.prepare_cached(KEEP)?;
            for (key, answer) in &batch.answers {
                put(&mut keep, *key, answer, now)?;
            }
            let mut touch = transaction.prepare_cached(TOUCH)?;
            for (key, times) in &batch.hits {
                touch.execute(params![key.0.to_be_bytes(), to_sqlite_integer(*times), now])?;
            }
        }
        transaction.commit()
    }

    /// Adds the answers whose keys are not there yet, in one transaction.
    pub(super) fn add_missing(&mut self, answers: &[(AnswerKey, StoredAnswer)]) -> Result<(), Error> {
        let now = unix_seconds();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut add = transaction.prepare_cached(ADD)?;
            for (key, answer) in answers {
                put(&mut add, *key, answer, now)?;
            }
        }
        transaction.commit()
    }

    /// Runs a user's command, which should rather wait for another process than fail.
    pub(super) fn retry_while_busy<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.connection.busy_timeout(PATIENCE)?;
        let outcome = work(self);
        self.connection.busy_timeout(TRY)?;
        outcome
    }
}

/// Carries out [`KEEP`] or [`ADD`].
fn put(statement: &mut Statement<'_>, key: AnswerKey, answer: &StoredAnswer, now: i64) -> Result<(), Error> {
    let usage = answer.usage;
    let values = params![
        key.0.to_be_bytes(),
        now,
        to_sqlite_integer(content_bytes(answer)),
        usage.map(|usage| to_sqlite_integer(usage.input)),
        usage.map(|usage| to_sqlite_integer(usage.cached)),
        usage.map(|usage| to_sqlite_integer(usage.cache_write)),
        usage.map(|usage| to_sqlite_integer(usage.output)),
        usage.map(|usage| to_sqlite_integer(usage.reasoning)),
        answer.model,
        answer.text,
    ];
    statement.execute(values).map(drop)
}

/// The bytes of an answer in the store, without the overhead of the format.
pub(super) fn content_bytes(answer: &StoredAnswer) -> u64 {
    (size_of::<AnswerKey>() + answer.text.len() + answer.model.as_ref().map_or(0, String::len)) as u64
}

/// The current time, as stored in the file.
pub(super) fn unix_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| to_sqlite_integer(since.as_secs()))
}

/// Whether an attempt failed only because another process was busy with the file.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// A problem with the store at `path`.
pub(super) fn unusable_store_problem(path: &Path, what: &str) -> Problem {
    Problem::new(ProblemCode::CacheUnusable, format!("`{}` {what}", path.display()))
        .hint("choose another folder, or move the file away to start with an empty cache")
}

/// A count as SQLite stores it. No relevant count exceeds the maximum.
pub(super) fn to_sqlite_integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The inverse of [`whole`].
pub(super) fn read_count(row: &Row<'_>, column: usize) -> Result<u64, Error> {
    row.get::<_, i64>(column).map(|value| u64::try_from(value).unwrap_or(0))
}

fn kept_answer(row: &Row<'_>) -> Result<StoredAnswer, Error> {
    let has_usage = row.get::<_, Option<i64>>(2)?.is_some();
    let usage = if has_usage { Some(read_usage(row, 2)?) } else { None };
    Ok(StoredAnswer { text: row.get(0)?, model: row.get(1)?, usage })
}

/// The usage in five columns, starting at `first`.
pub(super) fn read_usage(row: &Row<'_>, first: usize) -> Result<TokenUsage, Error> {
    Ok(TokenUsage {
        input: read_count(row, first)?,
        cached: read_count(row, first + 1)?,
        cache_write: read_count(row, first + 2)?,
        output: read_count(row, first + 3)?,
        reasoning: read_count(row, first + 4)?,
    })
}

/// The marks in the header of the file.
#[derive(Debug, PartialEq, Eq)]
struct HeaderMarks {
    application: i32,
    format: i32,
    empty: bool,
}

impl HeaderMarks {
    const OURS: Self = Self { application: APPLICATION, format: FORMAT, empty: false };
    const NEW: Self = Self { application: 0, format: 0, empty: true };

    /// Reads all marks in one transaction. Read one by one, they could be half those of an empty file and half ours
    /// when another process creates the tables in between.
    fn read_at_once(connection: &Connection) -> Result<Self, Error> {
        Self::read(&*connection.unchecked_transaction()?)
    }

    /// Reads the marks; the caller holds a transaction.
    fn read(connection: &Connection) -> Result<Self, Error> {
        Ok(Self {
            application: connection.pragma_query_value(None, "application_id", |row| row.get(0))?,
            format: connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
            empty: connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?,
        })
    }
}

/// Creates the tables in a new file and prepares a file that is ours; leaves any other file alone.
fn prepare(connection: &Connection) -> Result<HeaderMarks, Error> {
    let mut marks = HeaderMarks::read_at_once(connection)?;
    if marks == HeaderMarks::NEW {
        connection.pragma_update(None, "page_size", to_sqlite_integer(PAGE_BYTES))?;
        make_tables(connection)?;
        marks = HeaderMarks::read_at_once(connection)?;
    }
    if marks == HeaderMarks::OURS {
        write_ahead(connection)?;
        // A crash of the machine can lose the last answers this way, but never damages the file.
        connection.pragma_update(None, "synchronous", "normal")?;
        // A file with damaged tables is better rejected now than in the middle of a run.
        connection.prepare_cached(FIND)?;
        connection.prepare_cached(KEEP)?;
        connection.prepare_cached(TOUCH)?;
        connection.query_row("SELECT count(*) FROM (SELECT key FROM answers LIMIT 1)", [], |_| Ok(()))?;
    }
    Ok(marks)
}

fn make_tables(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = (|| {
        // Another process may have been faster.
        if HeaderMarks::read(connection)? == HeaderMarks::NEW {
            connection.execute_batch(TABLES)?;
            connection.pragma_update(None, "application_id", APPLICATION)?;
            connection.pragma_update(None, "user_version", FORMAT)?;
        }
        Ok(())
    })();
    connection.execute_batch(if made.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    made
}

/// Lets readers continue while another process writes. If the file system does not support that, the file is left
/// unchanged: slower, but just as safe.
fn write_ahead(connection: &Connection) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        let set = connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()));
        match set {
            // This step does not wait for other processes by itself; a transaction does.
            Err(error) if is_busy(&error) && began.elapsed() < PATIENCE => {
                connection.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
            }
            other => return other,
        }
    }
}
