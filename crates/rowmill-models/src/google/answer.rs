//! Responses of the Gemini API, complete or in chunks.

use std::borrow::Cow;

use rowmill_types::{FinishReason, TokenUsage, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::sources::collect_hosted_use;
use crate::error_body::ErrorBody;
use crate::tool_calls::{AnswerTerms, tool_call};
use crate::wire_protocol::{
    ReadAnswer, StreamAssembly, StreamStep, UnreadableAnswer, reject_error, to_owned_raw,
};

/// Assembles chunks; a complete response is one chunk.
#[derive(Debug, Default)]
pub(crate) struct GoogleAssembly {
    terms: AnswerTerms,
    text: String,
    calls: Vec<ToolCall>,
    /// The parts as received; kept only if there are tools.
    parts: Vec<Box<RawValue>>,
    /// Whether there are parts that text and calls cannot represent, such as signed calls.
    is_more: bool,
    grounding: Option<Box<RawValue>>,
    pages: Option<Box<RawValue>>,
    has_candidate: bool,
    finish: Option<FinishReason>,
    usage: Option<Box<RawValue>>,
    model: Option<String>,
}

impl GoogleAssembly {
    pub(crate) fn new(terms: AnswerTerms) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Reads a complete response.
    pub(super) fn read(mut self, body: &[u8]) -> Result<ReadAnswer, UnreadableAnswer> {
        self.take_chunk(body)?;
        if self.finish.is_none() && !self.has_candidate {
            return Err(UnreadableAnswer::Malformed("the answer has no candidates".to_owned()));
        }
        self.finish()
    }

    fn take_chunk(&mut self, body: &[u8]) -> Result<StreamStep, UnreadableAnswer> {
        let chunk: AnswerChunk<'_, ContentPart<'_>> = serde_json::from_slice(body)?;
        reject_error(chunk.error)?;
        if let Some(usage) = chunk.usage {
            self.usage = to_owned_raw(Some(usage));
        }
        if let Some(model) = chunk.model {
            self.model = Some(model.into_owned());
        }
        if let Some(reason) = chunk.feedback.and_then(|feedback| feedback.block_reason) {
            self.finish = Some(FinishReason::Filtered);
            self.text = format!("the prompt was blocked: {reason}");
            return Ok(StreamStep::NoContent);
        }
        let Some(candidate) = chunk.candidates.unwrap_or_default().into_iter().next() else {
            return Ok(StreamStep::NoContent);
        };
        self.has_candidate = true;
        let before = (self.text.len(), self.calls.len());
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            self.take_part(part);
        }
        if self.terms.has_tools() {
            self.keep_parts(body)?;
        }
        self.grounding = to_owned_raw(candidate.grounding).or(self.grounding.take());
        self.pages = to_owned_raw(candidate.pages).or(self.pages.take());
        if let Some(reason) = candidate.finish_reason {
            self.finish = Some(finish(&reason)?);
        }
        let grows = (self.text.len(), self.calls.len()) > before;
        Ok(if grows { StreamStep::Content } else { StreamStep::NoContent })
    }

    fn take_part(&mut self, part: ContentPart<'_>) {
        let is_thought = part.thought == Some(true);
        if !is_thought {
            self.text.push_str(part.text.as_deref().unwrap_or_default());
        }
        if let Some(called) = &part.function_call {
            let arguments = called.args.map(|args| self.terms.arguments(args)).unwrap_or_default();
            self.calls.push(tool_call(called.id.as_deref(), called.name.as_deref(), arguments));
        }
        let is_other = part.text.is_none() && part.function_call.is_none();
        self.is_more |= is_thought || is_other || part.signature.is_some();
    }

    /// Keeps the parts as received, except a call of the answer tool, which nobody answers.
    fn keep_parts(&mut self, body: &[u8]) -> Result<(), UnreadableAnswer> {
        let chunk: AnswerChunk<'_, &RawValue> = serde_json::from_slice(body)?;
        let candidate = chunk.candidates.unwrap_or_default().into_iter().next();
        let parts = candidate.and_then(|candidate| candidate.content?.parts);
        for raw in parts.unwrap_or_default() {
            let part: ContentPart<'_> = serde_json::from_str(raw.get())?;
            let name = part.function_call.as_ref().and_then(|called| called.name.as_deref());
            if !name.is_some_and(|name| self.terms.is_answer(name)) {
                self.parts.push(raw.to_owned());
            }
        }
        Ok(())
    }
}

impl StreamAssembly for GoogleAssembly {
    fn push_event(&mut self, data: &str) -> Result<StreamStep, UnreadableAnswer> {
        self.take_chunk(data.as_bytes())
    }

    /// The last chunk has a finish reason; usage may be in the same or a later chunk.
    fn is_complete_at_end(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self) -> Result<ReadAnswer, UnreadableAnswer> {
        let finish = self.finish.unwrap_or(FinishReason::Complete);
        let settled = self.terms.separate_calls(self.text, self.calls, finish);
        let echo = if settled.calls.is_empty() || !self.is_more {
            None
        } else {
            self.terms.native_message_of(self.parts.iter().map(|raw| raw.get()))
        };
        Ok(ReadAnswer {
            text: settled.text,
            finish,
            calls: settled.calls,
            echo,
            hosted: collect_hosted_use(self.grounding.as_deref(), self.pages.as_deref()),
            usage: usage(self.usage.as_deref()),
            raw_usage: self.usage,
            model: self.model,
            service_tier: None,
        })
    }
}

fn finish(reason: &str) -> Result<FinishReason, UnreadableAnswer> {
    match reason {
        "STOP" | "FINISH_REASON_UNSPECIFIED" => Ok(FinishReason::Complete),
        "MAX_TOKENS" => Ok(FinishReason::Length),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Ok(FinishReason::Filtered),
        // The text before such an end is not an answer.
        other => Err(UnreadableAnswer::Error(ErrorBody::from_code(
            "server_error",
            &format!("the provider ended the answer with `{other}`"),
        ))),
    }
}

/// A chunk, with its parts either parsed or raw.
#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
struct AnswerChunk<'a, P> {
    #[serde(default = "Option::default")]
    candidates: Option<Vec<AnswerCandidate<'a, P>>>,
    #[serde(default, borrow, rename = "promptFeedback")]
    feedback: Option<PromptFeedback<'a>>,
    #[serde(default, borrow, rename = "usageMetadata")]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "modelVersion")]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
struct AnswerCandidate<'a, P> {
    #[serde(default = "Option::default")]
    content: Option<CandidateContent<P>>,
    #[serde(default, borrow, rename = "finishReason")]
    finish_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow, rename = "groundingMetadata")]
    grounding: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "urlContextMetadata")]
    pages: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
struct CandidateContent<P> {
    #[serde(default = "Option::default")]
    parts: Option<Vec<P>>,
}

#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default, borrow, rename = "functionCall")]
    function_call: Option<FunctionCallPart<'a>>,
    #[serde(default, borrow, rename = "thoughtSignature")]
    signature: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FunctionCallPart<'a> {
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct PromptFeedback<'a> {
    #[serde(default, borrow, rename = "blockReason")]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoogleUsage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
}

/// The token usage. Gemini counts thoughts separately; here they are part of the output.
fn usage(raw: Option<&RawValue>) -> Option<TokenUsage> {
    let tokens: GoogleUsage = serde_json::from_str(raw?.get()).ok()?;
    let reasoning = tokens.thoughts_token_count.unwrap_or(0);
    Some(TokenUsage {
        input: tokens.prompt_token_count?.saturating_add(tokens.tool_use_prompt_token_count.unwrap_or(0)),
        cached: tokens.cached_content_token_count.unwrap_or(0),
        cache_write: 0,
        output: tokens.candidates_token_count.unwrap_or(0).saturating_add(reasoning),
        reasoning,
    })
}
