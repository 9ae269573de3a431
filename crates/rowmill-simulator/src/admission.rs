//! Admits calls, and settles their token use afterwards.

use jiff::Timestamp;
use rowmill_types::Usage;

use crate::limiter::{Account, Claim, Used};
use crate::outgoing::Headers;
use crate::prompt_cache::Prefix;
use crate::protocol::{Ask, Protocol, Refused};
use crate::rate_headers;
use crate::shared::{Shared, clock};

/// An admitted call. If it is dropped without an answer, its tokens are returned.
#[derive(Debug)]
pub(crate) struct Admission<'s> {
    shared: &'s Shared,
    account: Account,
    /// The tokens it took, until that is settled.
    claim: Option<Claim>,
    minute: usize,
    pub(crate) prefix: Prefix,
    /// The rate limit headers right after its admission.
    pub(crate) headers: Headers,
}

impl Shared {
    /// Takes what a call with `input` prompt tokens needs, or returns why it must wait.
    pub(crate) fn admit(
        &self,
        protocol: Protocol,
        ask: &Ask,
        key: &str,
        input: u64,
    ) -> Result<Admission<'_>, Refused> {
        let account = Account { key: key.to_owned(), model: ask.model.clone() };
        let prefix_tokens = self.script.tokenizer.count(&ask.system);
        let reserved = match protocol {
            Protocol::Chat | Protocol::Responses => ask.max_tokens.unwrap_or(0),
            Protocol::Messages | Protocol::Google => 0,
        };
        let claim = Claim { tokens: input.saturating_add(reserved), input };
        let mut conditions = self.conditions();
        let now = clock();
        let minute = conditions.minute_of(now);
        if let Err(spent) = conditions.quota.check(now) {
            self.recorder.quota_refused();
            let quota = conditions.quota.calls.unwrap_or(0);
            return Err(rate_headers::quota_refusal(protocol, &ask.model, quota, spent.wait));
        }
        let standings = conditions.limiter.admit(&account, claim, now).map_err(|limited| {
            self.recorder.rate_limited(minute);
            rate_headers::refusal(protocol, &ask.model, &limited, Timestamp::now())
        })?;
        conditions.quota.take(now);
        self.recorder.admitted(minute);
        let prefix = conditions.cache.look_up(protocol, &account, ask, prefix_tokens, now);
        let headers = rate_headers::headers(protocol, &standings, Timestamp::now());
        Ok(Admission { shared: self, account, claim: Some(claim), minute, prefix, headers })
    }
}

impl Admission<'_> {
    /// Records that the answer was made and used this many tokens, and charges for them.
    pub(crate) fn settle(&mut self, usage: &Usage) {
        self.settle_limits(Used { input: usage.input, output: usage.output });
        let cost = self.shared.script.price.map(|price| price.cost(usage));
        self.shared.recorder.made(usage, cost, self.minute);
        self.shared.conditions().cache.answered(self.prefix, clock());
    }

    fn settle_limits(&mut self, used: Used) {
        if let Some(claim) = self.claim.take() {
            self.shared.conditions().limiter.settle(&self.account, claim, used, clock());
        }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        self.settle_limits(Used::default());
    }
}
