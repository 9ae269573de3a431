//! The test run that a seed determines: the limits, the faults and the settings of one run.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::time::Duration;

use rowmill_core::cost::{Price, TokenPrices};
use rowmill_core::limits::CallParallelism;
use rowmill_types::Money;

use super::chance::{Chance, Shape};

/// The maximum number of tokens of an answer.
pub(crate) const MAX_OUTPUT: u64 = 4_000;

/// A call that hangs is cut off after this time.
pub(crate) const HANGS: Duration = Duration::from_secs(600);

/// The kinds of limits of a provider.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// Requests and tokens.
    Tokens,
    /// Requests, prompt tokens and generated tokens.
    InputAndOutput,
}

/// When a provider reports the remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tells {
    Never,
    AsItStoodAtFirst,
    AsItStandsAtLast,
}

/// The effect of an outage of the provider on calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outage {
    pub(super) from: Duration,
    pub(super) until: Duration,
    pub(super) refuses_connections: bool,
    /// Whether calls that were in flight are cut off, too.
    pub(super) cuts_calls: bool,
}

/// One run and its provider.
#[derive(Debug, Clone)]
pub(crate) struct ProviderTestRun {
    pub(crate) seed: u64,
    pub(crate) prompts: Vec<String>,
    pub(super) form: Form,
    /// Per minute: requests, prompt tokens, generated tokens.
    pub(super) limits: [f64; 3],
    /// When limits change, and by which factor.
    pub(crate) change: Option<(Duration, f64)>,
    pub(crate) tells: Tells,
    pub(super) says_when: bool,
    pub(super) latency: (Shape, f64),
    pub(super) output: (Shape, f64),
    pub(super) tokens_per_byte: f64,
    pub(super) outage: Option<Outage>,
    pub(super) faults: f64,
    pub(crate) parallel: CallParallelism,
    pub(crate) price: Price,
    pub(crate) budget: Option<Money>,
}

impl ProviderTestRun {
    pub(crate) fn new(seed: u64) -> Self {
        let chance = &mut Chance::new(seed);
        let calls_a_minute = chance.spread(20.0, 100.0);
        let rows = (calls_a_minute * (1.0 + chance.within(2.5, 5.0))) as usize;
        let tokens_per_byte = chance.within(0.15, 0.35);
        let (size, input) = (chance.one_of(&Shape::ALL), chance.spread(40.0, 1_500.0));
        // No call is larger than the limit, even after it is halved: such a call would never be accepted.
        let most = 0.3 * calls_a_minute * input;
        let prompts: Vec<String> =
            (1..=rows).map(|row| prompt(row, size.draw(input, chance).min(most) / tokens_per_byte)).collect();
        let sent: usize = prompts.iter().map(String::len).sum();
        let input = sent as f64 * tokens_per_byte / rows as f64;
        let output = (chance.one_of(&Shape::ALL), chance.spread(10.0, 400.0));
        let calls = [calls_a_minute, calls_a_minute * chance.within(1.0, 3.0)];
        let (first, second) = if chance.happens(0.5) { (0, 1) } else { (1, 0) };
        let limits = [calls[first], calls[second] * input, calls[second] * output.1];
        let latency = (chance.one_of(&Shape::ALL), chance.spread(0.2, 20.0));
        let length = rows as f64 / calls_a_minute * 60.0;
        let change = chance
            .happens(0.3)
            .then(|| (seconds(chance.within(0.2, 0.8) * length), chance.one_of(&[0.5, 0.7, 1.5, 2.0])));
        let price = price(chance);
        let expected = price.tokens.input.times(sent as u64 / 4).dollars()
            + price.tokens.output.times(output.1 as u64 * rows as u64).dollars();
        Self {
            seed,
            prompts,
            form: chance.one_of(&[Form::Tokens, Form::InputAndOutput]),
            limits,
            change,
            tells: chance.one_of(&[Tells::Never, Tells::AsItStoodAtFirst, Tells::AsItStandsAtLast]),
            says_when: chance.happens(0.5),
            latency,
            output,
            tokens_per_byte,
            outage: chance.happens(0.3).then(|| outage(length, chance)),
            faults: if chance.happens(0.5) { chance.within(0.0, 0.05) } else { 0.0 },
            parallel: match chance.happens(0.5) {
                true => CallParallelism::Auto,
                false => CallParallelism::AtMost(chance.spread(1.0, 100.0) as usize),
            },
            price,
            budget: chance
                .happens(0.3)
                .then(|| Money::from_dollars(expected * chance.within(0.2, 2.0)).unwrap()),
        }
    }

    /// Six hundred requests and sixty thousand tokens a minute, for six minutes; both limits bind in turn, and in
    /// between they change by this factor.
    pub(crate) fn of_a_minute(seed: u64, factor: f64) -> Self {
        let chance = &mut Chance::new(seed);
        let size = Shape::ALL[1 + (seed % 2) as usize];
        let input = if seed % 4 < 2 { 120.0 } else { 60.0 };
        let prompts = (1..=2_500).map(|row| prompt(row, size.draw(input * 4.0, chance))).collect();
        Self {
            prompts,
            form: [Form::Tokens, Form::InputAndOutput][(seed % 8 / 4) as usize],
            limits: [600.0, 50_000.0, 10_000.0],
            change: Some((seconds(150.0), factor)),
            tells: Tells::AsItStoodAtFirst,
            says_when: true,
            latency: (size, 1.5),
            output: (Shape::Uniform, 15.0),
            tokens_per_byte: 0.25,
            outage: None,
            faults: 0.0,
            parallel: CallParallelism::Auto,
            budget: None,
            ..Self::new(seed)
        }
    }

    /// Whether the whole quota can be used: it is reported, nothing else stops calls, and enough of them may be in
    /// flight.
    pub(crate) fn can_use_all(&self) -> bool {
        let most = self.change.map_or(1.0, |(_, factor)| factor.max(1.0));
        // Calls that hang hold their slots for a long time.
        let latency = self.latency.1 + 0.2 + self.faults / 5.0 * HANGS.as_secs_f64();
        let in_flight = self.limits[0] * most / 60.0 * latency;
        self.tells != Tells::Never
            && self.outage.is_none()
            && self.budget.is_none()
            && self.parallel.max_calls() as f64 >= 3.0 * in_flight
    }

    /// Whether limits are reported and nothing interferes.
    pub(crate) fn is_given_its_limits(&self) -> bool {
        self.tells != Tells::Never
    }
}

fn prompt(row: usize, bytes: f64) -> String {
    let number = format!("{row}:");
    let rest = (bytes as usize).saturating_sub(number.len());
    number + &"x".repeat(rest)
}

fn outage(length: f64, chance: &mut Chance) -> Outage {
    let from = chance.within(0.05, 0.9) * length;
    Outage {
        from: seconds(from),
        until: seconds(from + chance.spread(1.0, 120.0)),
        refuses_connections: chance.happens(0.5),
        cuts_calls: chance.happens(0.5),
    }
}

fn price(chance: &mut Chance) -> Price {
    let input = chance.spread(50_000.0, 5_000_000.0) as u64;
    let output = input * 4 + 1;
    let tokens = TokenPrices {
        input: Money::from_pico(input),
        cached: Money::from_pico(input / 10),
        cache_write: Money::from_pico(input + input / 4),
        output: Money::from_pico(output),
        reasoning: Money::from_pico(output),
    };
    Price { tokens, long: None, batch_percent: None }
}

pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}
