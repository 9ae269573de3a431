//! Admits calls, and settles their token use afterwards.

use jiff::Timestamp;
use rowmill_types::TokenUsage;

use crate::limiter::{CallClaim, CallUsage, LimitAccount};
use crate::outgoing_answer::Headers;
use crate::prompt_cache::PrefixUse;
use crate::protocol::{ParsedRequest, RequestRefusal, VendorProtocol};
use crate::rate_headers;
use crate::simulator_state::{SimulatorState, server_time};

/// An admitted call. If it is dropped without an answer, its tokens are returned.
#[derive(Debug)]
pub(crate) struct AdmittedCall<'s> {
    shared: &'s SimulatorState,
    account: LimitAccount,
    /// The tokens it took, until that is settled.
    claim: Option<CallClaim>,
    minute: usize,
    pub(crate) prefix: PrefixUse,
    /// The rate limit headers right after its admission.
    pub(crate) headers: Headers,
}

impl SimulatorState {
    /// Takes what a call with `input` prompt tokens needs, or returns why it must wait.
    pub(crate) fn admit(
        &self,
        protocol: VendorProtocol,
        ask: &ParsedRequest,
        key: &str,
        input: u64,
    ) -> Result<AdmittedCall<'_>, RequestRefusal> {
        let account = LimitAccount { key: key.to_owned(), model: ask.model.clone() };
        let prefix_tokens = self.script.tokenizer.count(&ask.system);
        let reserved = match protocol {
            VendorProtocol::Chat | VendorProtocol::Responses => ask.max_tokens.unwrap_or(0),
            VendorProtocol::Messages | VendorProtocol::Google => 0,
        };
        let claim = CallClaim { tokens: input.saturating_add(reserved), input };
        let mut conditions = self.conditions();
        let now = server_time();
        let minute = conditions.minute_of(now);
        if let Err(spent) = conditions.quota.check(now) {
            self.recorder.record_quota_refusal();
            let quota = conditions.quota.calls.unwrap_or(0);
            return Err(rate_headers::quota_refusal(protocol, &ask.model, quota, spent.wait));
        }
        let standings = conditions.limiter.admit(&account, claim, now).map_err(|limited| {
            self.recorder.record_rate_limit(minute);
            rate_headers::refusal(protocol, &ask.model, &limited, Timestamp::now())
        })?;
        conditions.quota.take(now);
        self.recorder.record_admission(minute);
        let prefix = conditions.cache.look_up(protocol, (&account, ask), prefix_tokens, now);
        let headers = rate_headers::headers(protocol, &standings, Timestamp::now());
        Ok(AdmittedCall { shared: self, account, claim: Some(claim), minute, prefix, headers })
    }
}

impl AdmittedCall<'_> {
    /// Records that the answer was made and used this many tokens, and charges for them.
    pub(crate) fn settle(&mut self, usage: &TokenUsage) {
        self.settle_limits(CallUsage { input: usage.input, output: usage.output });
        let cost = self.shared.script.price.map(|price| price.cost(usage));
        self.shared.recorder.record_answer(usage, cost, self.minute);
        self.shared.conditions().cache.record_prefix(self.prefix, server_time());
    }

    fn settle_limits(&mut self, used: CallUsage) {
        if let Some(claim) = self.claim.take() {
            self.shared.conditions().limiter.settle(&self.account, claim, used, server_time());
        }
    }
}

impl Drop for AdmittedCall<'_> {
    fn drop(&mut self) {
        self.settle_limits(CallUsage::default());
    }
}
