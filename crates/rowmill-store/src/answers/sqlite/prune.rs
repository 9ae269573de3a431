//! Makes a store smaller.

use rusqlite::{Error, TransactionBehavior};

use super::database::{AnswerDatabase, PAGE_BYTES, to_sqlite_integer, unix_seconds};
use crate::answers::{PruneReport, PruneSpec};

/// `?1` is the time since which an answer must have been given or found to be kept.
const EXPIRE: &str = "DELETE FROM answers WHERE id IN (
    SELECT id FROM answers LEFT JOIN uses USING (id)
    WHERE max(created_at, coalesce(last_used_at, 0)) < ?1)";

/// The least recently used answers are removed first. `?1` is the number of bytes that may be kept.
const EVICT: &str = "DELETE FROM answers WHERE id IN (SELECT id FROM (
        SELECT id, sum(bytes) OVER (
            ORDER BY max(created_at, coalesce(last_used_at, 0)) DESC, id DESC ROWS UNBOUNDED PRECEDING
        ) AS total FROM answers LEFT JOIN uses USING (id))
    WHERE total > ?1)";

/// Ids are reused, so hits must be removed together with their answers.
const FORGET: &str = "DELETE FROM uses WHERE id NOT IN (SELECT id FROM answers)";

/// The number of attempts to reach the size. The first one uses the average; after it, the overhead of the file per
/// answer is known better.
const TRIES: u32 = 4;

impl AnswerDatabase {
    /// Removes answers and returns their space.
    pub(super) fn prune(&mut self, spec: &PruneSpec) -> Result<PruneReport, Error> {
        let before = self.stats()?;
        self.remove(spec)?;
        let mut compacted = self.compact().is_ok();
        for _ in 1..TRIES {
            let Some(most) = spec.max_bytes.filter(|_| compacted) else { break };
            if self.evict(most)? == 0 {
                break;
            }
            compacted = self.compact().is_ok();
        }
        let after = self.stats()?;
        Ok(PruneReport {
            entries: before.entries.saturating_sub(after.entries),
            bytes: before.bytes.saturating_sub(after.bytes),
            compacted,
        })
    }

    fn remove(&mut self, spec: &PruneSpec) -> Result<(), Error> {
        let expiry = match spec.older_than {
            _ if spec.all => i64::MAX,
            Some(age) => unix_seconds().saturating_sub(to_sqlite_integer(age.as_secs())),
            None => i64::MIN,
        };
        self.delete(EXPIRE, expiry)?;
        match spec.max_bytes {
            Some(most) => self.evict(most).map(drop),
            None => Ok(()),
        }
    }

    /// Removes the least recently used answers until the rest should fit; returns how many.
    fn evict(&mut self, most: u64) -> Result<usize, Error> {
        let used = self.used_bytes()?;
        if used <= most {
            return Ok(0);
        }
        // The file is larger than its answers, so the target is scaled. It is reduced by two pages, because a page is
        // freed only once it holds no answer.
        let (bytes, aim) = (self.stats()?.bytes, most.saturating_sub(2 * PAGE_BYTES));
        let may_stay = u128::from(bytes) * u128::from(aim) / u128::from(used.max(1));
        self.delete(EVICT, to_sqlite_integer(u64::try_from(may_stay).unwrap_or(u64::MAX)))
    }

    fn delete(&mut self, which: &str, bound: i64) -> Result<usize, Error> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let deleted = transaction.execute(which, [bound])?;
        transaction.execute(FORGET, [])?;
        transaction.commit()?;
        Ok(deleted)
    }

    fn compact(&self) -> Result<(), Error> {
        self.connection.execute_batch("VACUUM")?;
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }
}
