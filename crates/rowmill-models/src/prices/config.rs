//! Prices in `rowmill.toml`; the built-in table has the same format.

use std::collections::BTreeMap;

use rowmill_core::cost::{Price, TokenPrices};
use rowmill_types::{Money, Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An entry `[prices."provider.model"]` of `rowmill.toml`: US dollars per
/// million tokens.
///
/// ```toml
/// [prices."lab.my-model"]
/// input = 0.25
/// cached = 0.025                      # read from the cache; default: `input`
/// cache_write = 0.3                   # written to the cache; default: `input`
/// output = 2.0
/// reasoning = 2.5                     # default: `output`
/// batch = 0.5                         # factor in the batch lane
/// max_output = 16384                  # maximum tokens in one answer
/// above = { tokens = 200000, input = 0.5, output = 3.0 }
/// tiers = { flex = 0.5, priority = 2.0 }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceConfig {
    /// Prompt tokens.
    pub input: f64,
    /// Prompt tokens read from the provider's cache; defaults to `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Prompt tokens written to the provider's cache; defaults to `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Generated tokens.
    pub output: f64,
    /// Generated tokens spent on reasoning; defaults to `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<f64>,
    /// Factor on all prices in the batch lane, if the provider has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<f64>,
    /// Maximum number of tokens in one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// Prices of calls with longer prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<LongPriceConfig>,
    /// Factors on all prices, by service tier.
    #[serde(default)]
    pub tiers: BTreeMap<String, f64>,
}

/// Prices of calls whose prompt exceeds a number of tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongPriceConfig {
    /// Number of prompt tokens that must be exceeded.
    pub tokens: u64,
    /// Prompt tokens.
    pub input: f64,
    /// Prompt tokens read from the provider's cache; defaults to `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Prompt tokens written to the provider's cache; defaults to `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Generated tokens.
    pub output: f64,
    /// Generated tokens spent on reasoning; defaults to `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<f64>,
}

/// A validated row of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PriceRow {
    pub(super) price: Price,
    pub(super) tiers: BTreeMap<String, f64>,
    pub(super) max_output: Option<u64>,
}

impl PriceRow {
    /// Validates an entry `[prices."key"]`.
    pub(super) fn read(key: &str, config: &PriceConfig) -> Result<Self, Problem> {
        let rates = PriceRates {
            input: config.input,
            cached: config.cached,
            cache_write: config.cache_write,
            output: config.output,
            reasoning: config.reasoning,
        };
        let long = config.above.as_ref().map(|long| {
            let rates = PriceRates {
                input: long.input,
                cached: long.cached,
                cache_write: long.cache_write,
                output: long.output,
                reasoning: long.reasoning,
            };
            rates.read(key, "above.").map(|prices| (long.tokens, prices))
        });
        for (tier, factor) in &config.tiers {
            factor_of(key, &format!("tiers.{tier}"), *factor)?;
        }
        if config.max_output == Some(0) {
            return Err(wrong(key, "max_output", 0.0).hint("omit it if it is not known"));
        }
        let batch_percent = config.batch.map(|batch| percent(key, batch)).transpose()?;
        let price = Price { tokens: rates.read(key, "")?, long: long.transpose()?, batch_percent };
        Ok(Self { price, tiers: config.tiers.clone(), max_output: config.max_output })
    }
}

/// Prices in dollars per million tokens, as written.
struct PriceRates {
    input: f64,
    cached: Option<f64>,
    cache_write: Option<f64>,
    output: f64,
    reasoning: Option<f64>,
}

impl PriceRates {
    fn read(&self, key: &str, place: &str) -> Result<TokenPrices, Problem> {
        let price = |name: &str, dollars: f64| {
            Money::from_dollars(dollars / 1e6).ok_or_else(|| {
                wrong(key, &format!("{place}{name}"), dollars)
                    .hint("prices are dollars per million tokens, zero or more, e.g. `input = 0.25`")
            })
        };
        Ok(TokenPrices {
            input: price("input", self.input)?,
            cached: price("cached", self.cached.unwrap_or(self.input))?,
            cache_write: price("cache_write", self.cache_write.unwrap_or(self.input))?,
            output: price("output", self.output)?,
            reasoning: price("reasoning", self.reasoning.unwrap_or(self.output))?,
        })
    }
}

/// Whole percent, rounded up, so that no batch costs more than estimated.
fn percent(key: &str, batch: f64) -> Result<u32, Problem> {
    factor_of(key, "batch", batch)?;
    if batch > 1.0 {
        return Err(wrong(key, "batch", batch).hint("it is a factor: `batch = 0.5` is half the price"));
    }
    Ok((batch * 100.0 - 1e-9).ceil().max(0.0) as u32)
}

fn factor_of(key: &str, name: &str, factor: f64) -> Result<(), Problem> {
    if factor.is_finite() && factor >= 0.0 {
        return Ok(());
    }
    Err(wrong(key, name, factor).hint("it is a factor on the price, zero or more, e.g. `0.5`"))
}

fn wrong(key: &str, name: &str, value: f64) -> Problem {
    let message = format!("`{name}` of `[prices.\"{key}\"]` cannot be `{value}`");
    Problem::new(ProblemCode::InvalidConfig, message)
}

/// The same price with all amounts multiplied.
pub(super) fn scale_price(price: Price, factor: f64) -> Price {
    let money = |amount: Money| Money::from_pico((amount.pico() as f64 * factor).round() as u64);
    let tokens = |prices: TokenPrices| TokenPrices {
        input: money(prices.input),
        cached: money(prices.cached),
        cache_write: money(prices.cache_write),
        output: money(prices.output),
        reasoning: money(prices.reasoning),
    };
    let long = price.long.map(|(above, prices)| (above, tokens(prices)));
    Price { tokens: tokens(price.tokens), long, ..price }
}
