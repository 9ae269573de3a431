//! The names of requests, and what is derived from them.

use rowmill_core::asked::asked_key;
use rowmill_core::ports::{AskedKey, Epoch};
use rowmill_types::{Message, RowId};
use xxhash_rust::xxh3::xxh3_64;

/// What the keys of a row's requests begin with. They are the same after a resume, so that a provider or a tool
/// that knows them does nothing twice; and no key ever names two different requests.
#[derive(Debug)]
pub(crate) struct RowKey(String);

impl RowKey {
    /// The run and the row, which is known by its id because rows move. A row that failed is asked again from
    /// its start: nobody is to give it the answers that it failed with, so the part of the run is in its keys.
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

    /// The key of a turn that asks this. What is asked is part of it: the row may have been changed.
    pub(crate) fn of_turn(&self, turn: u32, messages: &[Message]) -> String {
        let AskedKey(asked) = asked_key("", messages);
        format!("{}-{turn}-{:016x}", self.0, asked as u64)
    }

    /// The key of a tool's call, by its place in the work on the row, with these arguments.
    pub(crate) fn of_tool(&self, (node, turn, index): (usize, u32, usize), arguments: &str) -> String {
        format!("{}-{node}-{turn}-{index}-{:016x}", self.0, xxh3_64(arguments.as_bytes()))
    }
}

/// A number from 0 to 1 that differs between rows and attempts, so that rows that
/// failed together do not come back together.
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
