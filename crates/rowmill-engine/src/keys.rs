//! The keys of requests, and values derived from them.

use rowmill_core::asked::asked_key;
use rowmill_core::ports::{AskedKey, Epoch};
use rowmill_types::{Message, RowId};
use xxhash_rust::xxh3::xxh3_64;

/// The prefix of the keys of a row's requests. It is the same after a resume, so that a provider or a tool that
/// recognizes a key does nothing twice; no key ever identifies two different requests.
#[derive(Debug)]
pub(crate) struct RowKey(String);

impl RowKey {
    /// The run and the row, identified by its id because rows move. A row that failed starts from scratch and must not
    /// get the answers that it failed with, so the part of the run is included in its keys.
    pub(crate) fn new(run: &str, id: &RowId, failed_before: Option<Epoch>) -> Self {
        let mut key = String::with_capacity(run.len() + 64);
        key.push_str(run);
        key.push('-');
        match id {
            RowId::Number(number) => key.push_str(itoa::Buffer::new().format(*number)),
            RowId::Text(text) => key.push_str(&format!("{:016x}", xxh3_64(text.as_bytes()))),
        }
        if let Some(Epoch(epoch)) = failed_before {
            key.push_str(&format!("-e{epoch}"));
        }
        Self(key)
    }

    /// The key of a turn with these messages. They are part of the key, because the row may have been changed.
    pub(crate) fn of_turn(&self, turn: u32, messages: &[Message]) -> String {
        let AskedKey(asked) = asked_key("", messages);
        format!("{}-{turn}-{:016x}", self.0, asked as u64)
    }

    /// The key of a tool call with these arguments, by its position in the work on the row.
    pub(crate) fn of_tool(&self, (node, turn, index): (usize, u32, usize), arguments: &str) -> String {
        format!("{}-{node}-{turn}-{index}-{:016x}", self.0, xxh3_64(arguments.as_bytes()))
    }
}

/// A number from 0 to 1 that differs between rows and attempts, so that rows that failed together are not retried
/// together.
pub(crate) fn jitter(key: &str, attempt: u32) -> f64 {
    let mixed = xxh3_64(key.as_bytes()).wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (xxh3_64(&mixed.to_le_bytes()) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_for_the_same_question_of_the_same_row_and_no_other() {
        let key = |id: &str, failed_before, turn, asked: &str| {
            let row = RowKey::new("run", &RowId::Text(id.into()), failed_before);
            row.of_turn(turn, &[Message::user(asked)])
        };
        let first = key("a", None, 1, "alpha");
        assert_eq!(first, key("a", None, 1, "alpha"));
        for other in [
            key("b", None, 1, "alpha"),
            key("a", Some(Epoch(2)), 1, "alpha"),
            key("a", None, 2, "alpha"),
            key("a", None, 1, "beta"),
        ] {
            assert_ne!(first, other);
        }
        let tool = |arguments| RowKey::new("run", &RowId::Number(7), None).of_tool((0, 1, 2), arguments);
        assert!(tool("{}").starts_with("run-7-0-1-2-") && tool("{}") != tool("{\"n\":1}"));
    }
}
