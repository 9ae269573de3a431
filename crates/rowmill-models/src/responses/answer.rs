//! Responses of the Responses API.

use std::borrow::Cow;

use rowmill_types::{FinishReason, NativeMessage, TokenUsage, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat::answer::{InputDetails, OutputDetails};
use crate::error_body::ErrorBody;
use crate::hosted_use::{HostedUseCollector, collect_annotations};
use crate::tool_calls::{AnswerTerms, arguments_text, tool_call};
use crate::wire_protocol::{ReadAnswer, TextOrParts, UnreadableAnswer, reject_error, to_owned_raw};

/// Names under which xAI reports searches that `x_search` made, as if they were calls.
const X_SEARCHES: &[&str] = &["x_keyword_search", "x_semantic_search", "x_user_search", "x_thread_fetch"];

/// What was streamed, for servers that leave it out of the response that ends the stream.
#[derive(Debug, Default)]
pub(super) struct StreamedContent {
    /// The text.
    pub(super) text: String,
    /// The items; kept only if there are tools.
    pub(super) items: Vec<Box<RawValue>>,
}

/// Parses a response.
pub(super) fn read_response(
    body: &[u8],
    streamed: Option<StreamedContent>,
    terms: &AnswerTerms,
) -> Result<ReadAnswer, UnreadableAnswer> {
    let response: ResponseBody<'_> = serde_json::from_slice(body)?;
    reject_error(response.error)?;
    let status = response.status.as_deref().unwrap_or("completed");
    if matches!(status, "failed" | "cancelled") {
        let what = format!("the provider ended the answer with `{status}`");
        return Err(UnreadableAnswer::Error(ErrorBody::from_code("server_error", &what)));
    }
    if response.output.is_none() && streamed.is_none() {
        return Err(UnreadableAnswer::Malformed("the answer has no output".to_owned()));
    }
    let streamed = streamed.unwrap_or_default();
    let mut output = response.output.unwrap_or_default();
    let is_left_out = output.is_empty();
    if is_left_out {
        output = streamed.items.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    }
    let output_content = OutputContent::of(output, terms);
    let reason = response.incomplete_details.and_then(|details| details.reason);
    let finish = match (status, reason.as_deref()) {
        _ if !output_content.refusal.is_empty() => FinishReason::Refused,
        ("incomplete", Some("content_filter")) => FinishReason::Filtered,
        ("incomplete", _) => FinishReason::Length,
        _ => FinishReason::Complete,
    };
    let text = match output_content.text {
        _ if finish == FinishReason::Refused => output_content.refusal,
        text if text.is_empty() => streamed.text,
        text => text,
    };
    let mut hosted = output_content.hosted;
    if let Some(raw) = response.citations.filter(|_| terms.hosts) {
        let urls: Vec<String> = serde_json::from_str(raw.get()).unwrap_or_default();
        urls.iter().for_each(|url| hosted.add_source(url, None));
    }
    let settled = terms.separate_calls(text, output_content.calls, finish);
    let echo = if settled.calls.is_empty() || !output_content.is_more {
        None
    } else if is_left_out {
        echo(streamed.items.iter().map(|raw| &**raw), terms)
    } else {
        echo(serde_json::from_slice::<RawItems<'_>>(body)?.output, terms)
    };
    Ok(ReadAnswer {
        text: settled.text,
        finish,
        calls: settled.calls,
        echo,
        hosted: hosted.into_hosted_use(),
        usage: usage(response.usage),
        raw_usage: to_owned_raw(response.usage),
        model: response.model.map(Cow::into_owned),
        service_tier: response.service_tier.map(Cow::into_owned),
    })
}

/// The items to send back. A reasoning item without text and without encrypted content is identified only by
/// its id, and the provider has not stored it.
fn echo<'a>(
    items: impl IntoIterator<Item = &'a RawValue>,
    terms: &AnswerTerms,
) -> Option<Box<NativeMessage>> {
    let is_known_by_name = |raw: &RawValue| {
        let thought = serde_json::from_str::<ReasoningItem<'_>>(raw.get());
        thought.is_ok_and(|thought| thought.kind == "reasoning" && !thought.is_whole())
    };
    let kept = items.into_iter().filter(|raw| !is_known_by_name(raw));
    terms.native_message_of(kept.map(RawValue::get))
}

/// The content of output items.
#[derive(Default)]
struct OutputContent {
    text: String,
    refusal: String,
    calls: Vec<ToolCall>,
    hosted: HostedUseCollector,
    /// Whether there are items that text and calls cannot represent.
    is_more: bool,
}

impl OutputContent {
    fn of(output: Vec<OutputItem<'_>>, terms: &AnswerTerms) -> Self {
        let mut reported = Self::default();
        for item in output {
            let name = item.name.as_deref();
            match item.kind.as_ref().map(|kind| &*kind.0) {
                Some("function_call" | "custom_tool_call")
                    if terms.hosts && name.is_some_and(|name| X_SEARCHES.contains(&name)) =>
                {
                    reported.hosted.add_use("x_search", 1);
                    reported.is_more = true;
                }
                Some("function_call") => {
                    let arguments = item.arguments.map(arguments_text).unwrap_or_default();
                    reported.calls.push(tool_call(item.call_id.as_deref(), name, arguments));
                }
                Some("message") | None => {}
                Some(other) => {
                    if let Some(tool) = other.strip_suffix("_call").filter(|_| terms.hosts) {
                        reported.hosted.add_use(tool, 1);
                    }
                    reported.is_more = true;
                }
            }
            for content in item.content.into_iter().flatten() {
                reported.take(content);
            }
        }
        reported
    }

    fn take(&mut self, content: ItemContent<'_>) {
        match content.kind.as_deref() {
            Some("output_text") => {
                self.text.push_str(content.text.as_deref().unwrap_or_default());
                collect_annotations(&mut self.hosted, content.annotations);
            }
            Some("refusal") => self.refusal.push_str(content.refusal.as_deref().unwrap_or_default()),
            _ => {}
        }
    }
}

/// A complete response.
#[derive(Deserialize)]
struct ResponseBody<'a> {
    #[serde(default, borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(default, borrow)]
    output: Option<Vec<OutputItem<'a>>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    service_tier: Option<Cow<'a, str>>,
    /// The addresses of all sources, which xAI reports here.
    #[serde(default, borrow)]
    citations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(default, borrow)]
    reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct OutputItem<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<TextOrParts<'a>>,
    #[serde(default, borrow)]
    content: Option<Vec<ItemContent<'a>>>,
    #[serde(default, borrow)]
    call_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ItemContent<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    refusal: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    annotations: Option<&'a RawValue>,
}

/// The output of a response, each item as received.
#[derive(Deserialize)]
struct RawItems<'a> {
    #[serde(borrow)]
    output: Vec<&'a RawValue>,
}

/// The reasoning before a call.
#[derive(Deserialize)]
struct ReasoningItem<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    encrypted_content: Option<&'a RawValue>,
}

impl ReasoningItem<'_> {
    fn is_whole(&self) -> bool {
        let says =
            |raw: Option<&RawValue>| raw.is_some_and(|raw| !matches!(raw.get(), "null" | "[]" | "\"\""));
        says(self.content) || says(self.encrypted_content)
    }
}

#[derive(Deserialize)]
struct ResponsesUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

fn usage(raw: Option<&RawValue>) -> Option<TokenUsage> {
    let tokens: ResponsesUsage = serde_json::from_str(raw?.get()).ok()?;
    let details = tokens.input_tokens_details.unwrap_or_default();
    Some(TokenUsage {
        input: tokens.input_tokens?,
        cached: details.cached_tokens.unwrap_or(0),
        cache_write: details.cache_write_tokens.unwrap_or(0),
        output: tokens.output_tokens.unwrap_or(0),
        reasoning: tokens.output_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0),
    })
}
