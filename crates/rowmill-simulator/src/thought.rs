//! Thoughts that vendors sign, and that must be returned unchanged.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rowmill_schema_faker::seed_from;

use crate::protocol::{ParsedRequest, VendorProtocol};
use crate::reply::SimulatedReply;

/// The model's thought before its answer.
#[derive(Debug, Clone)]
pub(crate) struct SignedThought {
    pub(crate) text: String,
    /// A number that is unique to each thought.
    pub(crate) id: u64,
}

/// A signature of `about`, which can be verified by itself.
pub(crate) fn sign_thought(id: u64, about: &str) -> String {
    STANDARD.encode(format!("{id:016x}{:016x}", check(id, about)))
}

/// Whether this is a signature of `about`.
pub(crate) fn is_signed(signature: &str, about: &str) -> bool {
    let decoded = STANDARD.decode(signature).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.is_some_and(|text| is_checked(&text, about))
}

/// An id in hexadecimal that contains a checksum.
pub(crate) fn checked_id(id: u64) -> String {
    format!("{id:016x}{:016x}", check(id, ""))
}

/// Whether the text was made by [`checked_id`], or by [`sign_thought`] before encoding.
pub(crate) fn is_checked(text: &str, about: &str) -> bool {
    let Some((id, given)) = text.split_at_checked(16) else { return false };
    let number = |text| u64::from_str_radix(text, 16).ok();
    number(id).is_some_and(|id| number(given) == Some(check(id, about)))
}

fn check(id: u64, about: &str) -> u64 {
    seed_from(&["thought", &id.to_string(), about])
}

/// The calls that were made after a thought: 8 bytes each, and only if a script makes the model think.
#[derive(Debug, Default)]
pub(crate) struct ThoughtRegistry(Mutex<HashSet<u64>>);

impl ThoughtRegistry {
    fn lock(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the calls of an answer that came with a thought.
    pub(crate) fn remember(&self, ask: &ParsedRequest, reply: &SimulatedReply) {
        if reply.thought.is_none() {
            return;
        }
        let mut held = self.lock();
        for call in &reply.calls {
            held.insert(match ask.protocol {
                VendorProtocol::Google => key_without_id(&ask.prompt, &call.name, &call.arguments),
                _ => seed_from(&[&call.id]),
            });
        }
    }

    /// Whether the call with this id was made after a thought.
    pub(crate) fn belongs(&self, id: &str) -> bool {
        let held = self.lock();
        !held.is_empty() && held.contains(&seed_from(&[id]))
    }

    /// The same for a call that has no id.
    pub(crate) fn belongs_without_id(&self, prompt: &str, name: &str, arguments: &str) -> bool {
        let held = self.lock();
        !held.is_empty() && held.contains(&key_without_id(prompt, name, arguments))
    }
}

fn key_without_id(prompt: &str, name: &str, arguments: &str) -> u64 {
    seed_from(&[prompt, name, arguments])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_what_was_signed_and_nothing_else() {
        let signature = sign_thought(7, "I think.");
        assert!(is_signed(&signature, "I think."));
        assert!(!is_signed(&signature, "I thought."));
        assert!(!is_signed("AAAA", "I think.") && !is_signed("é", "") && !is_signed("", ""));
        assert!(is_checked(&checked_id(9), "") && !is_checked("rs_0", ""));
    }
}
