//! Responses of chat completions, complete or in chunks.

use std::borrow::Cow;

use rowmill_types::{FinishReason, TokenUsage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error_body::ErrorBody;
use crate::wire_protocol::{TextOrParts, UnreadableAnswer};

/// A response, or a chunk of one.
#[derive(Deserialize)]
pub(super) struct ChatAnswer<'a> {
    #[serde(default, borrow)]
    pub(super) choices: Option<Vec<ChatChoice<'a>>>,
    #[serde(default, borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) service_tier: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// One of several choices in a response.
#[derive(Deserialize)]
pub(super) struct ChatChoice<'a> {
    /// The message of a complete response.
    #[serde(default, borrow)]
    pub(super) message: Option<ChatMessage<'a>>,
    /// A part of the message in a stream.
    #[serde(default, borrow)]
    pub(super) delta: Option<ChatMessage<'a>>,
    #[serde(default, borrow)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A message of the model, complete or a part of it.
#[derive(Default, Deserialize)]
pub(super) struct ChatMessage<'a> {
    #[serde(default, borrow)]
    pub(super) content: Option<TextOrParts<'a>>,
    #[serde(default, borrow)]
    pub(super) refusal: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<Vec<ChatToolCall<'a>>>,
    /// The reasoning, which DeepSeek-style servers expect back together with calls.
    #[serde(default, borrow)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    /// The same in OpenRouter's format, with signatures.
    #[serde(default, borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    /// The sources of the answer.
    #[serde(default, borrow)]
    pub(super) annotations: Option<&'a RawValue>,
}

/// A tool call, complete or a part of one.
#[derive(Deserialize)]
pub(super) struct ChatToolCall<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default, borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) function: Option<ChatFunction<'a>>,
    /// Gemini's signature of a call.
    #[serde(default, borrow)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct ChatFunction<'a> {
    #[serde(default, borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// Maps the provider's finish reason.
pub(super) fn finish_reason(reason: Option<&str>) -> Result<FinishReason, UnreadableAnswer> {
    match reason {
        Some("length" | "max_tokens" | "model_length") => Ok(FinishReason::Length),
        Some("content_filter") => Ok(FinishReason::Filtered),
        Some("refusal") => Ok(FinishReason::Refused),
        Some(reason @ ("error" | "insufficient_system_resource")) => Err(UnreadableAnswer::Error(
            ErrorBody::from_code("server_error", &format!("the provider ended the answer with `{reason}`")),
        )),
        _ => Ok(FinishReason::Complete),
    }
}

#[derive(Deserialize)]
struct ChatUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<InputDetails>,
    #[serde(default)]
    completion_tokens_details: Option<OutputDetails>,
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

/// OpenAI's details of prompt tokens.
#[derive(Default, Deserialize)]
pub(crate) struct InputDetails {
    /// Tokens read from the cache.
    #[serde(default)]
    pub(crate) cached_tokens: Option<u64>,
    /// Tokens written to the cache.
    #[serde(default)]
    pub(crate) cache_write_tokens: Option<u64>,
}

/// OpenAI's details of generated tokens.
#[derive(Default, Deserialize)]
pub(crate) struct OutputDetails {
    /// Tokens spent on reasoning.
    #[serde(default)]
    pub(crate) reasoning_tokens: Option<u64>,
}

/// The token usage, if the provider reports it in a readable form.
pub(super) fn read_usage(raw: Option<&RawValue>) -> Option<TokenUsage> {
    let tokens: ChatUsage = serde_json::from_str(raw?.get()).ok()?;
    let details = tokens.prompt_tokens_details.unwrap_or_default();
    Some(TokenUsage {
        input: tokens.prompt_tokens?,
        cached: details.cached_tokens.or(tokens.prompt_cache_hit_tokens).unwrap_or(0),
        cache_write: details.cache_write_tokens.unwrap_or(0),
        output: tokens.completion_tokens.unwrap_or(0),
        reasoning: tokens.completion_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0),
    })
}
