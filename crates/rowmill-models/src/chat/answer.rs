//! Responses of chat completions, complete or in chunks.

use std::borrow::Cow;

use rowmill_types::{Finish, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error_body::ErrorBody;
use crate::reading::{Text, Unread};

/// A response, or a chunk of one.
#[derive(Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(default, borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
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
pub(super) struct Choice<'a> {
    /// The message of a complete response.
    #[serde(default, borrow)]
    pub(super) message: Option<Said<'a>>,
    /// A part of the message in a stream.
    #[serde(default, borrow)]
    pub(super) delta: Option<Said<'a>>,
    #[serde(default, borrow)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A message of the model, complete or a part of it.
#[derive(Default, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(default, borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) refusal: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<Vec<Called<'a>>>,
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
pub(super) struct Called<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default, borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) function: Option<Function<'a>>,
    /// Gemini's signature of a call.
    #[serde(default, borrow)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(default, borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// Maps the provider's finish reason.
pub(super) fn finish(reason: Option<&str>) -> Result<Finish, Unread> {
    match reason {
        Some("length" | "max_tokens" | "model_length") => Ok(Finish::Length),
        Some("content_filter") => Ok(Finish::Filtered),
        Some("refusal") => Ok(Finish::Refused),
        Some(reason @ ("error" | "insufficient_system_resource")) => Err(Unread::Error(ErrorBody::known(
            "server_error",
            &format!("the provider ended the answer with `{reason}`"),
        ))),
        _ => Ok(Finish::Complete),
    }
}

#[derive(Deserialize)]
struct Tokens {
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
pub(super) fn usage(raw: Option<&RawValue>) -> Option<Usage> {
    let tokens: Tokens = serde_json::from_str(raw?.get()).ok()?;
    let details = tokens.prompt_tokens_details.unwrap_or_default();
    Some(Usage {
        input: tokens.prompt_tokens?,
        cached: details.cached_tokens.or(tokens.prompt_cache_hit_tokens).unwrap_or(0),
        cache_write: details.cache_write_tokens.unwrap_or(0),
        output: tokens.completion_tokens.unwrap_or(0),
        reasoning: tokens.completion_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0),
    })
}
