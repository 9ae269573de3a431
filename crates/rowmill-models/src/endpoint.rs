//! What the limiter must know about a model endpoint before its first response.

use ring::digest::{Context, SHA256};

use crate::anthropic::wire::{self as anthropic, AnthropicWire};
use crate::build_model::{ModelSetup, delivery};
use crate::chat::wire::ChatWire;
use crate::files::UploadedFiles;
use crate::google::wire::{self as google, GoogleWire};
use crate::http_model::AnswerDelivery;
use crate::model_settings::{ModelSettingKey, ModelSettingValue};
use crate::provider::ProviderProtocol;
use crate::provider_table::is_builtin;
use crate::responses::wire::{RequestCarrier, ResponsesWire};
use crate::wire_protocol::WireProtocol;

/// What its setup alone says about a model's limits and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointFacts {
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
pub fn endpoint_facts(setup: &ModelSetup) -> EndpointFacts {
    let connection = &setup.connection;
    let is_builtin = is_builtin(&connection.provider);
    // Anthropic caches only what is marked, which is the instruction with the tools before it.
    let marks = setup.instruction.is_some() || !setup.tools.is_empty();
    let keeps = connection.protocol != ProviderProtocol::Anthropic || marks;
    let least = connection.quirks.cache.least_prefix(&setup.model.model);
    EndpointFacts {
        provider: connection.provider.clone(),
        account: account(setup),
        address: connection.redacted_base_url(),
        model: setup.model.model.clone(),
        max_output: max_output(setup),
        takes_output_cap: !is_builtin && setup.model.settings.integer(ModelSettingKey::MaxTokens).is_none(),
        thinking_budget: thinking_budget(setup),
        fixed_bytes: fixed_bytes(setup),
        caches_prefix: least.filter(|_| keeps && !is_builtin),
        is_builtin,
        max_tools: connection.quirks.max_tools,
    }
}

fn account(setup: &ModelSetup) -> String {
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

fn max_output(setup: &ModelSetup) -> Option<u64> {
    match setup.connection.protocol {
        ProviderProtocol::Anthropic => anthropic::max_output_tokens(setup),
        _ => u64::try_from(setup.model.settings.integer(ModelSettingKey::MaxTokens)?).ok(),
    }
}

fn thinking_budget(setup: &ModelSetup) -> u64 {
    match setup.connection.protocol {
        ProviderProtocol::Anthropic => anthropic::thinking_budget(setup),
        ProviderProtocol::Google => google::thinking_budget(setup),
        _ => match setup.model.settings.value(ModelSettingKey::Reasoning) {
            Some(ModelSettingValue::Integer(tokens)) => u64::try_from(*tokens).unwrap_or_default(),
            _ => 0,
        },
    }
}

/// The length of a body without messages.
fn fixed_bytes(setup: &ModelSetup) -> usize {
    // A contradictory setup is rejected before any call.
    let delivery = delivery(setup).unwrap_or(AnswerDelivery::Whole);
    let body = match setup.connection.protocol {
        ProviderProtocol::Chat => ChatWire::new(setup, delivery).body(&[], &UploadedFiles::NONE, None),
        ProviderProtocol::Responses => {
            ResponsesWire::new(setup, RequestCarrier::Whole).body(&[], &UploadedFiles::NONE, None)
        }
        ProviderProtocol::Anthropic => AnthropicWire::new(setup, delivery)
            .map(|wire| wire.body(&[], &UploadedFiles::NONE, None))
            .unwrap_or_default(),
        ProviderProtocol::Google => {
            GoogleWire::new(setup).map(|wire| wire.body(&[], &UploadedFiles::NONE, None)).unwrap_or_default()
        }
        ProviderProtocol::Builtin => Vec::new(),
    };
    body.len()
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
