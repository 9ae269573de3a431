//! Making a store smaller.

use std::time::Duration;

use rusqlite::{Error, TransactionBehavior};

use super::database::{Database, PAGE_BYTES, unix_seconds, whole};

/// `?1` is the time since which an answer must have been given or found to stay.
const EXPIRE: &str = "DELETE FROM answers WHERE id IN (
    SELECT id FROM answers LEFT JOIN uses USING (id)
    WHERE max(created_at, coalesce(last_used_at, 0)) < ?1)";

/// Answers that were used longest ago go first. `?1` is how many bytes may stay.
const EVICT: &str = "DELETE FROM answers WHERE id IN (SELECT id FROM (
        SELECT id, sum(bytes) OVER (
            ORDER BY max(created_at, coalesce(last_used_at, 0)) DESC, id DESC ROWS UNBOUNDED PRECEDING
        ) AS total FROM answers LEFT JOIN uses USING (id))
    WHERE total > ?1)";

/// Ids are given again, so hits must go together with their answers.
const FORGET: &str = "DELETE FROM uses WHERE id NOT IN (SELECT id FROM answers)";

/// How often the size is tried to be reached. The first try counts on the average; what the
/// file adds to each answer is known better after it.
const TRIES: u32 = 4;

/// What is to be removed; what any of the rules names goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneSpec {
    /// Answers that were neither given nor found for this long.
    pub older_than: Option<Duration>,
    /// The longest unused answers, until the file is no larger than this.
    pub max_bytes: Option<u64>,
    /// Every answer.
    pub all: bool,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many answers.
    pub entries: u64,
    /// The bytes of their texts, keys and model names.
    pub bytes: u64,
    /// Whether the file was made smaller too. It cannot be while another process writes to it
    /// or the disk has no room for a copy; the room is used again for new answers.
    pub compacted: bool,
}

impl Database {
    /// Removes answers and gives their room back.
    pub(super) fn prune(&mut self, spec: &PruneSpec) -> Result<Pruned, Error> {
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
        Ok(Pruned {
            entries: before.entries.saturating_sub(after.entries),
            bytes: before.bytes.saturating_sub(after.bytes),
            compacted,
        })
    }

    fn remove(&mut self, spec: &PruneSpec) -> Result<(), Error> {
        let expiry = match spec.older_than {
            _ if spec.all => i64::MAX,
            Some(age) => unix_seconds().saturating_sub(whole(age.as_secs())),
            None => i64::MIN,
        };
        self.delete(EXPIRE, expiry)?;
        match spec.max_bytes {
            Some(most) => self.evict(most).map(drop),
            None => Ok(()),
        }
    }

    /// Removes the longest unused answers until the rest should fit; says how many.
    fn evict(&mut self, most: u64) -> Result<usize, Error> {
        let used = self.used_bytes()?;
        if used <= most {
            return Ok(0);
        }
        // The file is larger than the answers; the same part of both may stay. Two pages less,
        // because a page goes only once no answer is left in it.
        let (bytes, aim) = (self.stats()?.bytes, most.saturating_sub(2 * PAGE_BYTES));
        let may_stay = u128::from(bytes) * u128::from(aim) / u128::from(used.max(1));
        self.delete(EVICT, whole(u64::try_from(may_stay).unwrap_or(u64::MAX)))
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
