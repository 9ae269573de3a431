//! The ids of requests in jobs.

use rowmill_types::Request;
use xxhash_rust::xxh3::xxh3_128;

/// The id of one attempt at a request: the same in every pass, and for no other request.
///
/// As text it has 32 hexadecimal digits, a hyphen and the number of the attempt, which every provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CustomId {
    /// The request.
    pub(super) request: u128,
    /// The attempt, counted from 1.
    pub(super) attempt: u32,
}

impl CustomId {
    /// The first attempt at a request.
    pub(super) fn first(request: &Request) -> Self {
        // The limit on the answer is part of the key: an answer that was cut there is no answer to a longer request.
        Self { request: xxh3_128(request.key.as_bytes()), attempt: 1 }
    }

    pub(super) fn next_attempt(self) -> Self {
        Self { attempt: self.attempt + 1, ..self }
    }

    /// Reads an id; `None` if it is not one of ours.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (request, attempt) = text.split_once('-')?;
        if request.len() != 32 {
            return None;
        }
        Some(Self { request: u128::from_str_radix(request, 16).ok()?, attempt: attempt.parse().ok()? })
    }
}

impl std::fmt::Display for CustomId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:032x}-{}", self.request, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_and_is_short_enough_for_every_provider() {
        let id = CustomId { request: 7, attempt: 12 };
        assert_eq!(CustomId::parse(&id.to_string()), Some(id));
        assert!(id.to_string().len() <= 64);
        for foreign in
            ["", "request-1", "00000000000000000000000000000007", "7-1", "zz000000000000000000000000000007-1"]
        {
            assert_eq!(CustomId::parse(foreign), None, "{foreign}");
        }
    }
}
