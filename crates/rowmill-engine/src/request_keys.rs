//! The keys of requests, and values derived from them.

use rowmill_core::answer_key::answer_key;
use rowmill_core::ports::{AnswerKey, RunEpoch};
use rowmill_types::{Message, RowId};
use xxhash_rust::xxh3::xxh3_64;

/// The prefix of the keys of a row's requests. It is the same after a resume, so that a provider or a tool that
/// recognizes a key does nothing twice; no key ever identifies two different requests.
#[derive(Debug)]
pub(crate) struct RowRequestKey(String);

impl RowRequestKey {
    /// The run and the row, identified by its id because rows move. A row that failed starts from scratch and must not
    /// get the answers that it failed with, so the part of the run is included in its keys.
    pub(crate) fn new(run: &str, id: &RowId, failed_before: Option<RunEpoch>) -> Self {
        let mut key = String::with_capacity(run.len() + 64);
        key.push_str(run);
        key.push('-');
        match id {
            RowId::Number(number) => key.push_str(itoa::Buffer::new().format(*number)),
            RowId::Text(text) => push_hex(&mut key, xxh3_64(text.as_bytes())),
        }
        if let Some(RunEpoch(epoch)) = failed_before {
            key.push_str(&format!("-e{epoch}"));
        }
        Self(key)
    }

    /// The key of a turn that asks this of an endpoint with this identity. Both are part of it: the row may have been
    /// changed, and so may the model, its settings, the instruction or the schema; or another model is asked instead.
    pub(crate) fn turn_key(&self, turn: u32, identity: &str, messages: &[Message]) -> String {
        let AnswerKey(asked) = answer_key(identity, messages);
        // Every call has one, so it is put together without the formatting of the standard library.
        let mut key = String::with_capacity(self.0.len() + 48);
        key.push_str(&self.0);
        key.push('-');
        key.push_str(itoa::Buffer::new().format(turn));
        key.push('-');
        push_hex(&mut key, asked as u64);
        key
    }

    /// The key of a call of a tool, by its place in the work on the row, with these arguments.
    pub(crate) fn tool_key(
        &self,
        (node, turn, index): (usize, u32, usize),
        (tool, arguments): (&str, &str),
    ) -> String {
        // No name of a tool has this character, and neither has JSON.
        let call = xxh3_64([tool, arguments].join("\0").as_bytes());
        format!("{}-{node}-{turn}-{index}-{call:016x}", self.0)
    }
}

/// Appends sixteen digits.
fn push_hex(text: &mut String, value: u64) {
    let digits = (0..16).rev().map(|place| (value >> (4 * place)) & 0xf);
    text.extend(digits.filter_map(|digit| char::from_digit(digit as u32, 16)));
}

/// A number from 0 to 1 that differs between rows and tries, so that rows that
/// failed together do not come back together.
pub(crate) fn retry_jitter(key: &str, attempt: u32) -> f64 {
    let mixed = xxh3_64(key.as_bytes()).wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (xxh3_64(&mixed.to_le_bytes()) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_with_all_its_digits() {
        let mut text = String::from("k-");
        push_hex(&mut text, 0x0012_3456_789a_bcde);
        assert_eq!(text, format!("k-{:016x}", 0x0012_3456_789a_bcde_u64));
    }

    #[test]
    fn keys_are_the_same_for_the_same_question_of_the_same_row_and_no_other() {
        let key = |id: &str, failed_before, turn, (identity, asked)| {
            let row = RowRequestKey::new("run", &RowId::Text(id.into()), failed_before);
            row.turn_key(turn, identity, &[Message::user(asked)])
        };
        let first = key("a", None, 1, ("small", "alpha"));
        assert_eq!(first, key("a", None, 1, ("small", "alpha")));
        for other in [
            key("b", None, 1, ("small", "alpha")),
            key("a", Some(RunEpoch(2)), 1, ("small", "alpha")),
            key("a", None, 2, ("small", "alpha")),
            key("a", None, 1, ("small", "beta")),
            key("a", None, 1, ("large", "alpha")),
        ] {
            assert_ne!(first, other);
        }
        let tool = |call| RowRequestKey::new("run", &RowId::Number(7), None).tool_key((0, 1, 2), call);
        let first = tool(("look", "{}"));
        assert!(first.starts_with("run-7-0-1-2-") && first == tool(("look", "{}")));
        assert!(first != tool(("look", "{\"n\":1}")) && first != tool(("write", "{}")));
    }
}
