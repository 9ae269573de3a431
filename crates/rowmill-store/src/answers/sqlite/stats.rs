//! Statistics of a store.

use rusqlite::Error;

use super::database::{AnswerDatabase, read_count, read_usage};
use crate::answers::AnswerStoreStats;

/// Sums are computed in floating point, which no invalid number in a row can overflow.
const STATS: &str = "SELECT count(*), CAST(total(bytes) AS INTEGER), min(created_at), max(created_at),
    CAST(total(times) AS INTEGER),
    CAST(total(input) AS INTEGER), CAST(total(cached) AS INTEGER), CAST(total(cache_write) AS INTEGER),
    CAST(total(output) AS INTEGER), CAST(total(reasoning) AS INTEGER),
    CAST(total(1.0 * times * input) AS INTEGER), CAST(total(1.0 * times * cached) AS INTEGER),
    CAST(total(1.0 * times * cache_write) AS INTEGER), CAST(total(1.0 * times * output) AS INTEGER),
    CAST(total(1.0 * times * reasoning) AS INTEGER)
    FROM answers LEFT JOIN uses USING (id)";

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
