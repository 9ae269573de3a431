//! Parses responses of the Messages API.

use std::borrow::Cow;

use rowmill_types::{FinishReason, NativeMessage, TokenUsage, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::sources::CitationCollector;
use crate::tool_calls::{AnswerTerms, tool_call};
use crate::wire_protocol::{ReadAnswer, UnreadableAnswer, reject_error, to_owned_raw};

/// Parses a complete response.
pub(super) fn read_message(body: &[u8], terms: &AnswerTerms) -> Result<ReadAnswer, UnreadableAnswer> {
    let answer: AnswerBody<'_> = serde_json::from_slice(body)?;
    reject_error(answer.error)?;
    let Some(blocks) = answer.content else {
        return Err(UnreadableAnswer::Malformed("the answer has no content".to_owned()));
    };
    let mut reported = AnswerContent::default();
    let mut sources = CitationCollector::default();
    for block in &blocks {
        reported.take(block, terms);
        sources.take(block, terms);
    }
    let finish = finish_reason(answer.stop_reason.as_deref());
    let settled = terms.separate_calls(reported.text, reported.calls, finish);
    let must_return = finish == FinishReason::Paused || (reported.is_more && !settled.calls.is_empty());
    let echo = if must_return {
        let raw = serde_json::from_slice::<RawBlocks<'_>>(body)?.content;
        native_message(blocks.iter().zip(raw.into_iter().map(RawValue::get)), terms)
    } else {
        None
    };
    let (usage, service_tier) = read_usage(answer.usage).unzip();
    Ok(ReadAnswer {
        text: settled.text,
        finish,
        calls: settled.calls,
        echo,
        hosted: sources.into_hosted_use(answer.usage, terms),
        usage,
        raw_usage: to_owned_raw(answer.usage),
        model: answer.model.map(Cow::into_owned),
        service_tier: service_tier.flatten(),
    })
}

/// The content of a response's blocks.
#[derive(Debug, Default)]
pub(super) struct AnswerContent {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// Whether there are blocks that text and calls cannot represent, such as signed thinking.
    pub(super) is_more: bool,
}

impl AnswerContent {
    pub(super) fn take(&mut self, block: &AnswerBlock<'_>, terms: &AnswerTerms) {
        match block.kind.as_deref() {
            Some("text") => {
                self.text.push_str(block.text.as_deref().unwrap_or_default());
                self.is_more |= block.citations.is_some_and(|raw| !matches!(raw.get(), "null" | "[]"));
            }
            Some("tool_use") => {
                let arguments = block.input.map(|input| terms.arguments(input)).unwrap_or_default();
                self.calls.push(tool_call(block.id.as_deref(), block.name.as_deref(), arguments));
            }
            _ => self.is_more = true,
        }
    }
}

/// The blocks to send back: all except empty texts, which the API rejects, and the call of the answer tool,
/// which nobody answers.
pub(super) fn native_message<'a>(
    blocks: impl Iterator<Item = (&'a AnswerBlock<'a>, &'a str)>,
    terms: &AnswerTerms,
) -> Option<Box<NativeMessage>> {
    let is_kept = |block: &AnswerBlock<'_>| match block.kind.as_deref() {
        Some("text") => block.text.as_deref().is_some_and(|text| !text.is_empty()),
        Some("tool_use") => !block.name.as_deref().is_some_and(|name| terms.is_answer(name)),
        _ => true,
    };
    terms.native_message_of(blocks.filter(|(block, _)| is_kept(block)).map(|(_, raw)| raw))
}

/// Maps the provider's stop reason to a finish reason.
pub(super) fn finish_reason(reason: Option<&str>) -> FinishReason {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("refusal") => FinishReason::Refused,
        Some("pause_turn") => FinishReason::Paused,
        _ => FinishReason::Complete,
    }
}

#[derive(Deserialize)]
struct AnswerBody<'a> {
    #[serde(default, borrow)]
    content: Option<Vec<AnswerBlock<'a>>>,
    #[serde(default, borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// The content of a response, each block as received.
#[derive(Deserialize)]
struct RawBlocks<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

/// One block of a response.
#[derive(Debug, Deserialize)]
pub(super) struct AnswerBlock<'a> {
    #[serde(default, borrow, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) citations: Option<&'a RawValue>,
    /// The result of a tool that ran at the provider.
    #[serde(default, borrow)]
    pub(super) content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    output_tokens_details: Option<UsageDetails>,
    #[serde(default)]
    service_tier: Option<String>,
}

#[derive(Default, Deserialize)]
struct UsageDetails {
    #[serde(default)]
    thinking_tokens: Option<u64>,
}

/// The token usage and the service tier. Anthropic counts cached tokens separately; here they are part of the
/// input.
pub(super) fn read_usage(raw: Option<&RawValue>) -> Option<(TokenUsage, Option<String>)> {
    let tokens: AnthropicUsage = serde_json::from_str(raw?.get()).ok()?;
    let cached = tokens.cache_read_input_tokens.unwrap_or(0);
    let cache_write = tokens.cache_creation_input_tokens.unwrap_or(0);
    let usage = TokenUsage {
        input: tokens.input_tokens?.saturating_add(cached).saturating_add(cache_write),
        cached,
        cache_write,
        output: tokens.output_tokens.unwrap_or(0),
        reasoning: tokens.output_tokens_details.unwrap_or_default().thinking_tokens.unwrap_or(0),
    };
    Some((usage, tokens.service_tier))
}
