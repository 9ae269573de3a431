//! The names from OpenTelemetry's semantic conventions for generative AI that spans use, and the format of
//! attributes in OTLP/JSON.

use std::borrow::Cow;

use rowmill_types::FinishReason;
use serde::Serialize;

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const AGENT: &str = "gen_ai.agent.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const SYSTEM: &str = "gen_ai.system_instructions";
pub(super) const INPUT: &str = "gen_ai.input.messages";
pub(super) const OUTPUT: &str = "gen_ai.output.messages";
pub(super) const TOOL: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(super) const ERROR: &str = "error.type";
pub(super) const SERVICE: &str = "service.name";
pub(super) const SERVICE_VERSION: &str = "service.version";
// For these the conventions have no name.
pub(super) const RUN: &str = "rowmill.run.id";
pub(super) const ROW_NUMBER: &str = "rowmill.row.number";
pub(super) const ROW_ID: &str = "rowmill.row.id";
pub(super) const ROW_OK: &str = "rowmill.row.ok";
pub(super) const REUSED: &str = "rowmill.row.reused";
pub(super) const BELOW_MIN_RATING: &str = "rowmill.row.below_min_rating";
pub(super) const COST: &str = "rowmill.cost_usd";
pub(super) const CITATIONS: &str = "rowmill.citations";
pub(super) const HOSTED: &str = "rowmill.hosted_tools";

/// The span kinds that are used.
pub(super) const INTERNAL: u8 = 1;
pub(super) const CLIENT: u8 = 3;
/// The status of a failed span.
pub(super) const FAILED: u8 = 2;

/// An attribute of a span.
#[derive(Debug, Serialize)]
pub(super) struct SpanAttribute<'a> {
    pub(super) key: &'static str,
    pub(super) value: AttributeValue<'a>,
}

/// The value of an attribute. Integers are strings in OTLP/JSON.
#[derive(Debug, Serialize)]
pub(super) enum AttributeValue<'a> {
    #[serde(rename = "stringValue")]
    Text(Cow<'a, str>),
    #[serde(rename = "intValue")]
    Whole(String),
    #[serde(rename = "doubleValue")]
    Number(f64),
    #[serde(rename = "boolValue")]
    Truth(bool),
    #[serde(rename = "arrayValue")]
    List { values: Vec<Self> },
}

impl<'a> SpanAttribute<'a> {
    pub(super) fn of_text(key: &'static str, text: impl Into<Cow<'a, str>>) -> Self {
        Self { key, value: AttributeValue::Text(text.into()) }
    }

    pub(super) fn of_number(key: &'static str, number: u64) -> Self {
        Self { key, value: AttributeValue::Whole(number.to_string()) }
    }
}

/// The provider of a model string, by its name in the conventions.
pub(super) fn provider(model: &str) -> Option<&str> {
    let (provider, _) = model.split_once('.')?;
    Some(match provider {
        "azure" => "azure.ai.openai",
        "google" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "responses" => "openai",
        "xai" => "x_ai",
        other => other,
    })
}

/// The finish reason of an answer.
pub(super) fn finish_reason(finish: FinishReason, calls_tools: bool) -> &'static str {
    match finish {
        FinishReason::Complete if calls_tools => "tool_call",
        FinishReason::Complete => "stop",
        FinishReason::Length => "length",
        FinishReason::Filtered => "content_filter",
        FinishReason::Refused => "refusal",
        FinishReason::Paused => "pause",
    }
}
