//! `request_params`: the settings of requests, and the limits of an agent.

use std::num::NonZeroU32;
use std::time::Duration;

use rowmill_types::settings::JSON_SCHEMA;

use crate::card_fields::CardFields;
use crate::field::CardField;
use crate::mistake::CardMistake;
use crate::yaml::YamlContent;

/// A card's settings for requests. Missing settings come from the model string and the flags.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestParams {
    /// The maximum length of an answer in tokens.
    pub max_tokens: Option<NonZeroU32>,
    /// The maximum number of model calls for one answer of the agent.
    pub max_iterations: Option<NonZeroU32>,
    /// Whether the model may call several tools in one turn.
    pub parallel_tool_calls: Option<bool>,
    /// The maximum time without data in a stream.
    pub streaming_timeout: Option<StreamIdleTimeout>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Sampling from the `k` most likely tokens.
    pub top_k: Option<u32>,
    /// The minimum probability of a token relative to the most likely one.
    pub min_p: Option<f64>,
    /// The penalty for words that have occurred.
    pub presence_penalty: Option<f64>,
    /// The penalty for words by how often they have occurred.
    pub frequency_penalty: Option<f64>,
    /// The penalty for repetition.
    pub repetition_penalty: Option<f64>,
    /// The requested service tier.
    pub service_tier: Option<ServiceTier>,
    /// How tool results are used.
    pub tool_result_mode: ToolResultMode,
    /// How a schema and tools are combined.
    pub structured_tool_policy: StructuredToolPolicy,
}

/// The maximum time without data in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamIdleTimeout {
    /// No limit.
    Never,
    /// A time limit.
    After(Duration),
}

/// A service tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceTier {
    /// `fast`
    Fast,
    /// `flex`
    Flex,
}

/// How tool results are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolResultMode {
    /// The model makes an answer from them.
    #[default]
    Postprocess,
    /// They are the answer.
    Passthrough,
    /// The caller that uses this agent as a tool chooses; otherwise the model makes an answer from
    /// them.
    Selectable,
}

/// How a schema and tools are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StructuredToolPolicy {
    /// The best way for the model.
    #[default]
    Auto,
    /// The schema is sent in every turn.
    Always,
    /// The schema is sent once a tool has returned something.
    Defer,
    /// No tools are offered.
    NoTools,
}

const KNOWN: &[&str] = &[
    "max_tokens",
    "max_iterations",
    "parallel_tool_calls",
    "streaming_timeout",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "service_tier",
    "tool_result_mode",
    "structured_tool_policy",
    "model",
    "maxTokens",
    "topP",
    "topK",
    "minP",
    "presencePenalty",
    "frequencyPenalty",
    "repetitionPenalty",
    "use_history",
    "emit_loop_progress",
    "template_vars",
    "mcp_metadata",
    "response_format",
    "structured_schema",
];

/// Settings that have no effect in a batch.
const IDLE: [&str; 4] = ["use_history", "emit_loop_progress", "template_vars", "mcp_metadata"];

/// `request_params`, and the settings in it that belong to the card as a whole.
#[derive(Debug, Default)]
pub(crate) struct ParsedRequestParams {
    pub(crate) params: RequestParams,
    pub(crate) model: Option<CardField>,
    pub(crate) ignored: Vec<String>,
}

/// Reads `request_params`.
pub(crate) fn read(field: CardField) -> Result<ParsedRequestParams, Vec<CardMistake>> {
    let mut fields = CardFields::from_field(field, KNOWN)?;
    for name in ["response_format", "structured_schema"] {
        if let Some(field) = fields.take(name) {
            fields.add_mistakes(
                field
                    .mistake("is not read from a card: the format of results is set for the run")
                    .hint(format!("set the schema with {JSON_SCHEMA}")),
            );
        }
    }
    let mut ignored = Vec::new();
    for name in IDLE {
        if let Some(field) = fields.take(name)
            && field.content != YamlContent::Boolean(false)
        {
            ignored.push(field.path);
        }
    }
    let params = RequestParams {
        max_tokens: read_either(&mut fields, "max_tokens", "maxTokens", positive),
        max_iterations: fields.read("max_iterations", positive),
        parallel_tool_calls: fields.read("parallel_tool_calls", CardField::boolean),
        streaming_timeout: streaming_timeout(&mut fields),
        temperature: fields.read("temperature", |field| at_least_zero(field, f64::MAX)),
        top_p: read_either(&mut fields, "top_p", "topP", |field| at_least_zero(field, 1.0)),
        top_k: read_either(&mut fields, "top_k", "topK", |field| field.integer_u32(0)),
        min_p: read_either(&mut fields, "min_p", "minP", |field| at_least_zero(field, 1.0)),
        presence_penalty: read_either(&mut fields, "presence_penalty", "presencePenalty", CardField::number),
        frequency_penalty: read_either(
            &mut fields,
            "frequency_penalty",
            "frequencyPenalty",
            CardField::number,
        ),
        repetition_penalty: read_either(
            &mut fields,
            "repetition_penalty",
            "repetitionPenalty",
            CardField::number,
        ),
        service_tier: fields.read("service_tier", |field| {
            field.choice(&[("fast", ServiceTier::Fast), ("flex", ServiceTier::Flex)])
        }),
        tool_result_mode: fields.read("tool_result_mode", result_mode).unwrap_or_default(),
        structured_tool_policy: fields.read("structured_tool_policy", tool_policy).unwrap_or_default(),
    };
    let model = fields.take("model");
    fields.finish(ParsedRequestParams { params, model, ignored })
}

/// Reads a field that has two spellings.
fn read_either<T>(
    fields: &mut CardFields,
    name: &str,
    other: &str,
    read: impl FnOnce(CardField) -> Result<T, CardMistake>,
) -> Option<T> {
    let value = match (fields.take(name), fields.take(other)) {
        (Some(_), Some(field)) => {
            Err(field.mistake(&format!("is the same as `{name}`")).hint("keep one of them"))
        }
        (one, another) => one.or(another).map(read).transpose(),
    };
    fields.value_or_note(value)
}

fn positive(field: CardField) -> Result<NonZeroU32, CardMistake> {
    let wrong = field.clone();
    NonZeroU32::new(field.integer_u32(1)?).ok_or_else(|| wrong.mistake("must be 1 or more"))
}

fn at_least_zero(field: CardField, most: f64) -> Result<f64, CardMistake> {
    let wrong = field.clone();
    let number = field.number()?;
    if number < 0.0 {
        return Err(wrong.mistake(&format!("must be 0 or more, not {number}")));
    }
    if number > most {
        return Err(wrong.mistake(&format!("must be {most} or less, not {number}")));
    }
    Ok(number)
}

/// Here, `null` has a meaning: no limit.
fn streaming_timeout(fields: &mut CardFields) -> Option<StreamIdleTimeout> {
    let name = "streaming_timeout";
    let is_null = |fields: &CardFields| {
        let entry = fields.entries().iter().find(|entry| entry.key == name);
        entry.is_some_and(|entry| entry.node.content == YamlContent::Null)
    };
    if is_null(fields) {
        return Some(StreamIdleTimeout::Never);
    }
    fields.read(name, CardField::seconds).map(StreamIdleTimeout::After)
}

fn result_mode(field: CardField) -> Result<ToolResultMode, CardMistake> {
    field.choice(&[
        ("postprocess", ToolResultMode::Postprocess),
        ("passthrough", ToolResultMode::Passthrough),
        ("selectable", ToolResultMode::Selectable),
    ])
}

fn tool_policy(field: CardField) -> Result<StructuredToolPolicy, CardMistake> {
    field.choice(&[
        ("auto", StructuredToolPolicy::Auto),
        ("always", StructuredToolPolicy::Always),
        ("defer", StructuredToolPolicy::Defer),
        ("no_tools", StructuredToolPolicy::NoTools),
    ])
}
