//! Statistics of a store.

use rowmill_types::TokenUsage;
use rusqlite::Error;

use super::database::{AnswerDatabase, read_count, read_usage};

/// Sums are computed in floating point, which no invalid number in a row can overflow.
const STATS: &str = "SELECT count(*), CAST(total(bytes) AS INTEGER), min(created_at), max(created_at),
    CAST(total(times) AS INTEGER),
    CAST(total(input) AS INTEGER), CAST(total(cached) AS INTEGER), CAST(total(cache_write) AS INTEGER),
    CAST(total(output) AS INTEGER), CAST(total(reasoning) AS INTEGER),
    CAST(total(1.0 * times * input) AS INTEGER), CAST(total(1.0 * times * cached) AS INTEGER),
    CAST(total(1.0 * times * cache_write) AS INTEGER), CAST(total(1.0 * times * output) AS INTEGER),
    CAST(total(1.0 * times * reasoning) AS INTEGER)
    FROM answers LEFT JOIN uses USING (id)";

/// The content of a store of answers, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerStoreStats {
    /// The number of answers.
    pub entries: u64,
    /// The bytes of their texts, keys and model names.
    pub bytes: u64,
    /// The size of the file.
    pub file_bytes: u64,
    /// When the oldest answer was given, in seconds since 1970.
    pub oldest: Option<u64>,
    /// When the newest answer was given, in seconds since 1970.
    pub newest: Option<u64>,
    /// How often these answers were found.
    pub hits: u64,
    /// The usage of the answers when they were paid for: finding each of them once saves that much.
    pub kept: TokenUsage,
    /// The usage that the hits so far have saved.
    pub saved: TokenUsage,
}

impl AnswerDatabase {
    /// Counts everything.
    pub(super) fn stats(&self) -> Result<AnswerStoreStats, Error> {
        let file_bytes = self.file_bytes()?;
        self.connection.query_row(STATS, [], |row| {
            let time = |column| {
                let seconds = row.get::<_, Option<i64>>(column)?;
                Ok::<_, Error>(seconds.and_then(|seconds| u64::try_from(seconds).ok()))
            };
            Ok(AnswerStoreStats {
                entries: read_count(row, 0)?,
                bytes: read_count(row, 1)?,
                file_bytes,
                oldest: time(2)?,
                newest: time(3)?,
                hits: read_count(row, 4)?,
                kept: read_usage(row, 5)?,
                saved: read_usage(row, 10)?,
            })
        })
    }

    /// The size of the file, without pages that are still in the write-ahead log.
    pub(super) fn file_bytes(&self) -> Result<u64, Error> {
        Ok(self.pragma("page_count")? * self.pragma("page_size")?)
    }

    /// The bytes of the file that hold something.
    pub(super) fn used_bytes(&self) -> Result<u64, Error> {
        let pages = self.pragma("page_count")?.saturating_sub(self.pragma("freelist_count")?);
        Ok(pages * self.pragma("page_size")?)
    }

    fn pragma(&self, name: &str) -> Result<u64, Error> {
        self.connection.pragma_query_value(None, name, |row| read_count(row, 0))
    }
}
