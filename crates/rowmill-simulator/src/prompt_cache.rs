//! Which prompt prefixes are cached, according to the vendors' rules.

use std::collections::HashMap;
use std::time::Duration;

use rowmill_schema_faker::seed_from;
use tokio::time::Instant;

use crate::limiter::LimitAccount;
use crate::protocol::{ParsedRequest, VendorProtocol};

/// A shorter prefix is not cached.
const LEAST_TOKENS: u64 = 1_024;
/// OpenAI counts cached tokens in multiples of this.
const STEP: u64 = 128;
/// A prefix expires if it has not been used for this long.
const KEPT: Duration = Duration::from_secs(300);
/// If there are more prefixes than this, expired ones are removed.
const MANY: usize = 1_024;

/// The cached prefixes, and when each was last used.
#[derive(Debug, Default)]
pub(crate) struct PromptCache {
    answered: HashMap<u64, Instant>,
}

/// The effect of the cache on a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PrefixUse {
    /// Tokens read from the cache.
    pub(crate) cached: u64,
    /// Tokens written to it.
    pub(crate) written: u64,
    /// The key under which the prefix is stored once the call was answered, if it can be cached.
    key: Option<u64>,
}

impl PromptCache {
    /// Looks up the stable prefix of a call, which has `tokens` tokens.
    pub(crate) fn look_up(
        &self,
        protocol: VendorProtocol,
        (account, ask): (&LimitAccount, &ParsedRequest),
        tokens: u64,
        now: Instant,
    ) -> PrefixUse {
        let is_marked = protocol != VendorProtocol::Messages || ask.marks_cache;
        if tokens < LEAST_TOKENS || !is_marked {
            return PrefixUse::default();
        }
        let vendor = match protocol {
            VendorProtocol::Chat | VendorProtocol::Responses => "openai",
            VendorProtocol::Messages => "anthropic",
            VendorProtocol::Google => "google",
        };
        let key = seed_from(&[vendor, &account.key, &account.model, &ask.system]);
        let is_known =
            self.answered.get(&key).is_some_and(|used| now.saturating_duration_since(*used) < KEPT);
        let (cached, written) = match protocol {
            VendorProtocol::Messages if !is_known => (0, tokens),
            _ if !is_known => (0, 0),
            VendorProtocol::Chat | VendorProtocol::Responses => (tokens / STEP * STEP, 0),
            VendorProtocol::Messages | VendorProtocol::Google => (tokens, 0),
        };
        PrefixUse { cached, written, key: Some(key) }
    }

    /// Stores the prefix of an answered call, so that later ones find it.
    pub(crate) fn record_prefix(&mut self, prefix: PrefixUse, now: Instant) {
        let Some(key) = prefix.key else { return };
        self.answered.insert(key, now);
        if self.answered.len() > MANY {
            self.answered.retain(|_, used| now.saturating_duration_since(*used) < KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> LimitAccount {
        LimitAccount { key: "k".into(), model: "m".into() }
    }

    fn ask() -> ParsedRequest {
        ParsedRequest { system: "Be brief.".into(), marks_cache: true, ..ParsedRequest::default() }
    }

    #[test]
    fn a_prefix_is_cached_once_a_call_with_it_was_answered() {
        let now = Instant::now();
        for (protocol, written, cached) in [
            (VendorProtocol::Chat, 0, 1_152),
            (VendorProtocol::Responses, 0, 1_152),
            (VendorProtocol::Messages, 1_200, 1_200),
            (VendorProtocol::Google, 0, 1_200),
        ] {
            let mut cache = PromptCache::default();
            let first = cache.look_up(protocol, (&account(), &ask()), 1_200, now);
            let meanwhile = cache.look_up(protocol, (&account(), &ask()), 1_200, now);
            assert_eq!((first.cached, first.written, meanwhile), (0, written, first), "{protocol:?}");
            cache.record_prefix(first, now);
            let second = cache.look_up(protocol, (&account(), &ask()), 1_200, now);
            assert_eq!((second.cached, second.written), (cached, 0), "{protocol:?}");
            let other = LimitAccount { model: "other".into(), ..account() };
            assert_eq!(cache.look_up(protocol, (&other, &ask()), 1_200, now).cached, 0, "{protocol:?}");
        }
    }

    #[test]
    fn short_unmarked_and_old_prefixes_are_not_cached() {
        let now = Instant::now();
        let mut cache = PromptCache::default();
        let short = cache.look_up(VendorProtocol::Chat, (&account(), &ask()), 1_023, now);
        let unmarked = ParsedRequest { marks_cache: false, ..ask() };
        let unmarked = cache.look_up(VendorProtocol::Messages, (&account(), &unmarked), 9_000, now);
        assert_eq!((short, unmarked), (PrefixUse::default(), PrefixUse::default()));

        let long = cache.look_up(VendorProtocol::Chat, (&account(), &ask()), 1_024, now);
        cache.record_prefix(long, now);
        let cached = |after: u64| {
            cache
                .look_up(VendorProtocol::Chat, (&account(), &ask()), 1_024, now + Duration::from_secs(after))
                .cached
        };
        assert_eq!((cached(299), cached(300)), (1_024, 0));
    }
}
