//! A model that the batch lane answers for.

use std::sync::Arc;

use rowmill_core::cost::Price;
use rowmill_core::limits::Spend;
use rowmill_core::ports::BatchApi;
use rowmill_engine::prompt_token_upper_bound;
use rowmill_types::{Money, Request, TokenUsage};

/// A model that the batch lane is to answer for.
#[derive(Debug, Clone)]
pub(crate) struct EndpointPlan {
    /// Identifies it, with everything that its requests have in common.
    pub(crate) identity: String,
    /// The model string.
    pub(crate) name: String,
    /// The provider's batch API.
    pub(crate) api: Arc<dyn BatchApi>,
    /// Its price in the batch lane, if known.
    pub(crate) price: Option<Price>,
    /// Its price for live calls, if known.
    pub(crate) live_price: Option<Price>,
    /// The maximum number of tokens of an answer, if known.
    pub(crate) max_output: Option<u64>,
    /// The bytes that every request has in common.
    pub(crate) fixed_bytes: usize,
}

impl EndpointPlan {
    /// The most that a request may cost.
    pub(super) fn worst_case(&self, request: &Request) -> Spend {
        let input = prompt_token_upper_bound(self.fixed_bytes, &request.messages);
        let output = request.output_cap.or(self.max_output).unwrap_or_default();
        let cost = self.price.map(|price| price.max_cost(input, output)).unwrap_or_default();
        Spend { cost, tokens: input.saturating_add(output) }
    }

    /// What an answer would have cost more as a live call.
    pub(super) fn saved_by(&self, usage: Option<&TokenUsage>) -> Money {
        let cost = |price: Option<Price>| price.zip(usage).map(|(price, usage)| price.cost(usage));
        let (live, batch) = (cost(self.live_price), cost(self.price));
        live.unwrap_or_default().saturating_sub(batch.unwrap_or_default())
    }

    pub(super) fn spend_for(&self, usage: Option<&TokenUsage>) -> Spend {
        let cost = self.price.zip(usage).map(|(price, usage)| price.cost(usage)).unwrap_or_default();
        Spend { cost, tokens: usage.map_or(0, TokenUsage::tokens) }
    }
}
