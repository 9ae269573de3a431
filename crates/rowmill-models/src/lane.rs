//! What the limiter must know about a model endpoint before its first response.

use ring::digest::{Context, SHA256};

use crate::anthropic::wire::{self as anthropic, AnthropicWire};
use crate::build::{Setup, delivery};
use crate::chat::wire::ChatWire;
use crate::exchange::Delivery;
use crate::files::Uploaded;
use crate::google::wire::{self as google, GoogleWire};
use crate::provider::Protocol;
use crate::provider_table::is_builtin;
use crate::reading::Wire;
use crate::responses::wire::{Carrier, ResponsesWire};
use crate::settings::{Key, Setting};

/// What its setup alone says about a model's limits and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneFacts {
    /// The provider's name.
    pub provider: String,
    /// Identifies the account: a digest of the base URL, the key and the headers, from which the key cannot
    /// be recovered. Models with the same account share its limits.
    pub account: String,
    /// Where requests go, without anything in it that may be secret.
    pub address: String,
    /// The model, as it is sent.
    pub model: String,
    /// The maximum tokens of an answer, if requests state it.
    pub max_output: Option<u64>,
    /// Whether each call may set its own limit on the answer: the user has set none, and the provider
    /// respects one.
    pub takes_output_cap: bool,
    /// The tokens that the model may spend on thinking before its answer, if that is set as a number of
    /// tokens. A limit on the answer must be higher.
    pub thinking_budget: u64,
    /// The bytes that every request contains: instruction, schema, tools and the constant part of the body.
    pub fixed_bytes: usize,
    /// The shortest prefix that the provider caches for later requests, in tokens; `None` if it caches none
    /// or the minimum is not known.
    pub caches_prefix: Option<u64>,
    /// Whether the model answers in this process.
    pub is_builtin: bool,
    /// How many tools it accepts in one request, if known.
    pub max_tools: Option<usize>,
}

/// What is known about a model before its first call.
#[must_use]
pub fn lane_facts(setup: &Setup) -> LaneFacts {
    let connection = &setup.connection;
    let is_builtin = is_builtin(&connection.provider);
    // Anthropic caches only what is marked, which is the instruction with the tools before it.
    let marks = setup.instruction.is_some() || !setup.tools.is_empty();
    let keeps = connection.protocol != Protocol::Anthropic || marks;
    let least = connection.quirks.cache.least_prefix(&setup.model.model);
    LaneFacts {
        provider: connection.provider.clone(),
        account: account(setup),
        address: connection.place(),
        model: setup.model.model.clone(),
        max_output: max_output(setup),
        takes_output_cap: !is_builtin && setup.model.settings.integer(Key::MaxTokens).is_none(),
        thinking_budget: thinking_budget(setup),
        fixed_bytes: fixed_bytes(setup),
        caches_prefix: least.filter(|_| keeps && !is_builtin),
        is_builtin,
        max_tools: connection.quirks.max_tools,
    }
}

fn account(setup: &Setup) -> String {
    let connection = &setup.connection;
    let mut digest = Context::new(&SHA256);
    // Each part is hashed with its length, so that no two accounts produce the same input.
    let mut add = |part: &[u8]| {
        digest.update(&part.len().to_le_bytes());
        digest.update(part);
    };
    add(connection.base_url().unwrap_or_default().as_bytes());
    add(connection.key.as_ref().map_or("", |key| key.reveal()).as_bytes());
    for (name, value) in &connection.headers {
        add(name.as_str().as_bytes());
        add(value.as_bytes());
    }
    digest.finish().as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn max_output(setup: &Setup) -> Option<u64> {
    match setup.connection.protocol {
        Protocol::Anthropic => anthropic::most_output(setup),
        _ => u64::try_from(setup.model.settings.integer(Key::MaxTokens)?).ok(),
    }
}

fn thinking_budget(setup: &Setup) -> u64 {
    match setup.connection.protocol {
        Protocol::Anthropic => anthropic::thinking_budget(setup),
        Protocol::Google => google::thinking_budget(setup),
        _ => match setup.model.settings.value(Key::Reasoning) {
            Some(Setting::Integer(tokens)) => u64::try_from(*tokens).unwrap_or_default(),
            _ => 0,
        },
    }
}

/// The length of a body without messages.
fn fixed_bytes(setup: &Setup) -> usize {
    // A contradictory setup is rejected before any call.
    let delivery = delivery(setup).unwrap_or(Delivery::Whole);
    let body = match setup.connection.protocol {
        Protocol::Chat => ChatWire::new(setup, delivery).body(&[], &Uploaded::NONE, None),
        Protocol::Responses => ResponsesWire::new(setup, Carrier::Whole).body(&[], &Uploaded::NONE, None),
        Protocol::Anthropic => AnthropicWire::new(setup, delivery)
            .map(|wire| wire.body(&[], &Uploaded::NONE, None))
            .unwrap_or_default(),
        Protocol::Google => {
            GoogleWire::new(setup).map(|wire| wire.body(&[], &Uploaded::NONE, None)).unwrap_or_default()
        }
        Protocol::Builtin => Vec::new(),
    };
    body.len()
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
