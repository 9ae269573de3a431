//! What chat completions send, whole or in chunks.

use std::borrow::Cow;

use rowmill_types::{Finish, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error_body::ErrorBody;
use crate::reading::{Text, Unread};

/// An answer, or a chunk of one.
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

/// One answer of several that could be asked for.
#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    /// What was said, in a whole answer.
    #[serde(default, borrow)]
    pub(super) message: Option<Said<'a>>,
    /// A piece of it, in a stream.
    #[serde(default, borrow)]
    pub(super) delta: Option<Said<'a>>,
    #[serde(default, borrow)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// What the model said, whole or a piece of it.
#[derive(Default, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(default, borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) refusal: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<Vec<Called<'a>>>,
    /// What the model thought, which servers of the DeepSeek kind want back beside calls.
    #[serde(default, borrow)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    /// The same at OpenRouter, with signatures.
    #[serde(default, borrow)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    /// The sources of the answer.
    #[serde(default, borrow)]
    pub(super) annotations: Option<&'a RawValue>,
}

/// A tool call, whole or a piece of one.
#[derive(Deserialize)]
pub(super) struct Called<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default, borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) function: Option<Function<'a>>,
    /// What Gemini signs a call with.
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

/// How an answer ended, by the provider's word.
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

/// What OpenAI tells of prompt tokens.
#[derive(Default, Deserialize)]
pub(crate) struct InputDetails {
    /// Read from the cache.
    #[serde(default)]
    pub(crate) cached_tokens: Option<u64>,
    /// Written to the cache.
    #[serde(default)]
    pub(crate) cache_write_tokens: Option<u64>,
}

/// What OpenAI tells of generated tokens.
#[derive(Default, Deserialize)]
pub(crate) struct OutputDetails {
    /// Spent on reasoning.
    #[serde(default)]
    pub(crate) reasoning_tokens: Option<u64>,
}

/// The tokens, where the provider tells them in a way that can be read.
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
