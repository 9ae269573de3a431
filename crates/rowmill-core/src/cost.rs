//! The cost of calls, and its maximum.

use rowmill_types::{Money, TokenUsage};
use serde::{Deserialize, Serialize};

/// The price of one token of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenPrices {
    /// A prompt token.
    pub input: Money,
    /// A prompt token that was read from the provider's cache.
    pub cached: Money,
    /// A prompt token that was written to the provider's cache.
    pub cache_write: Money,
    /// A generated token.
    pub output: Money,
    /// A generated token that was spent on reasoning.
    pub reasoning: Money,
}

impl TokenPrices {
    fn cost(&self, usage: &TokenUsage) -> Money {
        let plain = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_write);
        let visible_output = usage.output.saturating_sub(usage.reasoning);
        self.input.times(plain)
            + self.cached.times(usage.cached)
            + self.cache_write.times(usage.cache_write)
            + self.output.times(visible_output)
            + self.reasoning.times(usage.reasoning)
    }

    fn worst(&self, input: u64, output: u64) -> Money {
        self.input.max(self.cache_write).max(self.cached).times(input)
            + self.output.max(self.reasoning).times(output)
    }

    fn longest_within(&self, input: u64, most: Money) -> u64 {
        let left = most.saturating_sub(self.worst(input, 0)).pico();
        left.checked_div(self.output.max(self.reasoning).pico()).unwrap_or(u64::MAX)
    }
}

/// The prices of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Prices of ordinary calls.
    pub tokens: TokenPrices,
    /// Prices of calls whose prompt has more tokens than this.
    pub long: Option<(u64, TokenPrices)>,
    /// The price of a call in the batch lane, as a percentage of a live call; `None` if the provider has no batch lane.
    pub batch_percent: Option<u32>,
}

impl Price {
    /// The cost of a call with this usage.
    ///
    /// ```
    /// # use {rowmill_core::cost::{Price, TokenPrices}, rowmill_types::{Money, TokenUsage}};
    /// let dollars = |price| Money::from_dollars(price / 1e6).unwrap();
    /// let tokens = TokenPrices {
    ///     input: dollars(1.0), cached: dollars(0.1), cache_write: dollars(1.25),
    ///     output: dollars(4.0), reasoning: dollars(4.0),
    /// };
    /// let price = Price { tokens, long: None, batch_percent: Some(50) };
    /// let usage = TokenUsage { input: 1_000_000, cached: 500_000, output: 250_000, ..TokenUsage::default() };
    /// assert_eq!(price.cost(&usage).to_string(), "$1.55");
    /// ```
    #[must_use]
    pub fn cost(&self, usage: &TokenUsage) -> Money {
        match self.long {
            Some((above, prices)) if usage.input > above => prices.cost(usage),
            _ => self.tokens.cost(usage),
        }
    }

    /// The maximum cost of a call with at most this many tokens.
    #[must_use]
    pub fn max_cost(&self, input: u64, output: u64) -> Money {
        let ordinary = self.tokens.worst(input, output);
        match self.long {
            Some((above, prices)) if input > above => ordinary.max(prices.worst(input, output)),
            _ => ordinary,
        }
    }

    /// The longest answer with which a call with at most this many prompt tokens cannot cost more than `most`; zero if
    /// the prompt alone may cost more.
    #[must_use]
    pub fn max_output_within(&self, input: u64, most: Money) -> u64 {
        if self.max_cost(input, 0) > most {
            return 0;
        }
        let ordinary = self.tokens.longest_within(input, most);
        match self.long {
            Some((above, prices)) if input > above => ordinary.min(prices.longest_within(input, most)),
            _ => ordinary,
        }
    }

    /// The savings by the provider's cache on a call, compared with the same call without it.
    #[must_use]
    pub fn cache_savings(&self, usage: &TokenUsage) -> Money {
        let uncached = TokenUsage { cached: 0, cache_write: 0, ..*usage };
        self.cost(&uncached).saturating_sub(self.cost(usage))
    }

    /// The prices of the same calls in the batch lane, rounded up; unchanged if the provider has no discount for it.
    #[must_use]
    pub fn in_batch_lane(&self) -> Self {
        let percent = u64::from(self.batch_percent.unwrap_or(100));
        let of = |price: Money| Money::from_pico(price.pico().saturating_mul(percent).div_ceil(100));
        let all = |prices: TokenPrices| TokenPrices {
            input: of(prices.input),
            cached: of(prices.cached),
            cache_write: of(prices.cache_write),
            output: of(prices.output),
            reasoning: of(prices.reasoning),
        };
        let long = self.long.map(|(above, prices)| (above, all(prices)));
        Self { tokens: all(self.tokens), long, batch_percent: None }
    }

    /// The cost in the batch lane of calls that would cost `live` dollars, if there is a batch lane.
    #[must_use]
    pub fn batch_cost(&self, live: Money) -> Option<Money> {
        let percent = u128::from(self.batch_percent?);
        Some(Money::from_pico(u64::try_from(u128::from(live.pico()) * percent / 100).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price() -> Price {
        let money = Money::from_pico;
        let tokens = TokenPrices {
            input: money(10),
            cached: money(1),
            cache_write: money(12),
            output: money(40),
            reasoning: money(50),
        };
        let long = TokenPrices { input: money(20), ..tokens };
        Price { tokens, long: Some((100, long)), batch_percent: Some(50) }
    }

    #[test]
    fn every_kind_of_token_has_its_price_and_long_prompts_theirs() {
        let usage = TokenUsage { input: 100, cached: 20, cache_write: 10, output: 9, reasoning: 4 };
        assert_eq!(price().cost(&usage).pico(), 70 * 10 + 20 + 10 * 12 + 5 * 40 + 4 * 50);
        let longer = TokenUsage { input: 101, ..usage };
        assert_eq!(price().cost(&longer).pico(), 71 * 20 + 20 + 10 * 12 + 5 * 40 + 4 * 50);
    }

    #[test]
    fn no_call_costs_more_than_its_worst_case() {
        let worst = price().max_cost(150, 9);
        for (input, cached, cache_write, output, reasoning) in
            [(150, 0, 0, 9, 0), (150, 150, 0, 9, 9), (100, 0, 100, 9, 9), (150, 0, 150, 0, 0)]
        {
            let usage = TokenUsage { input, cached, cache_write, output, reasoning };
            assert!(price().cost(&usage) <= worst, "{usage:?}");
        }
    }

    #[test]
    fn the_batch_lane_has_its_discount_and_the_cache_its_saving() {
        assert_eq!(price().batch_cost(Money::from_pico(101)), Some(Money::from_pico(50)));
        let usage = TokenUsage { input: 100, cached: 50, ..TokenUsage::default() };
        assert_eq!(price().cache_savings(&usage).pico(), 50 * 9);
    }
}
