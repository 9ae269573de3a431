//! Responses of the Gemini API, complete or in chunks.

use std::borrow::Cow;

use rowmill_types::{Finish, ToolCall, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::sources::gather;
use crate::error_body::ErrorBody;
use crate::reading::{Assembly, Reading, Step, Unread, keep, no_error};
use crate::tools::{Terms, call};

/// Assembles chunks; a complete response is one chunk.
#[derive(Debug, Default)]
pub(crate) struct GoogleAssembly {
    terms: Terms,
    text: String,
    calls: Vec<ToolCall>,
    /// The parts as received; kept only if there are tools.
    parts: Vec<Box<RawValue>>,
    /// Whether there are parts that text and calls cannot represent, such as signed calls.
    is_more: bool,
    grounding: Option<Box<RawValue>>,
    pages: Option<Box<RawValue>>,
    has_candidate: bool,
    finish: Option<Finish>,
    usage: Option<Box<RawValue>>,
    model: Option<String>,
}

impl GoogleAssembly {
    pub(crate) fn new(terms: Terms) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Reads a complete response.
    pub(super) fn read(mut self, body: &[u8]) -> Result<Reading, Unread> {
        self.take_chunk(body)?;
        if self.finish.is_none() && !self.has_candidate {
            return Err(Unread::Malformed("the answer has no candidates".to_owned()));
        }
        self.finish()
    }

    fn take_chunk(&mut self, body: &[u8]) -> Result<Step, Unread> {
        let chunk: Chunk<'_, Part<'_>> = serde_json::from_slice(body)?;
        no_error(chunk.error)?;
        if let Some(usage) = chunk.usage {
            self.usage = keep(Some(usage));
        }
        if let Some(model) = chunk.model {
            self.model = Some(model.into_owned());
        }
        if let Some(reason) = chunk.feedback.and_then(|feedback| feedback.block_reason) {
            self.finish = Some(Finish::Filtered);
            self.text = format!("the prompt was blocked: {reason}");
            return Ok(Step::Quiet);
        }
        let Some(candidate) = chunk.candidates.unwrap_or_default().into_iter().next() else {
            return Ok(Step::Quiet);
        };
        self.has_candidate = true;
        let before = (self.text.len(), self.calls.len());
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            self.take_part(part);
        }
        if self.terms.has_tools() {
            self.keep_parts(body)?;
        }
        self.grounding = keep(candidate.grounding).or(self.grounding.take());
        self.pages = keep(candidate.pages).or(self.pages.take());
        if let Some(reason) = candidate.finish_reason {
            self.finish = Some(finish(&reason)?);
        }
        let grows = (self.text.len(), self.calls.len()) > before;
        Ok(if grows { Step::Content } else { Step::Quiet })
    }

    fn take_part(&mut self, part: Part<'_>) {
        let is_thought = part.thought == Some(true);
        if !is_thought {
            self.text.push_str(part.text.as_deref().unwrap_or_default());
        }
        if let Some(called) = &part.function_call {
            let arguments = called.args.map(|args| self.terms.arguments(args)).unwrap_or_default();
            self.calls.push(call(called.id.as_deref(), called.name.as_deref(), arguments));
        }
        let is_other = part.text.is_none() && part.function_call.is_none();
        self.is_more |= is_thought || is_other || part.signature.is_some();
    }

    /// Keeps the parts as received, except a call of the answer tool, which nobody answers.
    fn keep_parts(&mut self, body: &[u8]) -> Result<(), Unread> {
        let chunk: Chunk<'_, &RawValue> = serde_json::from_slice(body)?;
        let candidate = chunk.candidates.unwrap_or_default().into_iter().next();
        let parts = candidate.and_then(|candidate| candidate.content?.parts);
        for raw in parts.unwrap_or_default() {
            let part: Part<'_> = serde_json::from_str(raw.get())?;
            let name = part.function_call.as_ref().and_then(|called| called.name.as_deref());
            if !name.is_some_and(|name| self.terms.is_answer(name)) {
                self.parts.push(raw.to_owned());
            }
        }
        Ok(())
    }
}

impl Assembly for GoogleAssembly {
    fn take(&mut self, data: &str) -> Result<Step, Unread> {
        self.take_chunk(data.as_bytes())
    }

    /// The last chunk has a finish reason; usage may be in the same or a later chunk.
    fn ended(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(self) -> Result<Reading, Unread> {
        let finish = self.finish.unwrap_or(Finish::Complete);
        let settled = self.terms.settle(self.text, self.calls, finish);
        let echo = if settled.calls.is_empty() || !self.is_more {
            None
        } else {
            self.terms.echo_of(self.parts.iter().map(|raw| raw.get()))
        };
        Ok(Reading {
            text: settled.text,
            finish,
            calls: settled.calls,
            echo,
            hosted: gather(self.grounding.as_deref(), self.pages.as_deref()),
            usage: usage(self.usage.as_deref()),
            raw_usage: self.usage,
            model: self.model,
            service_tier: None,
        })
    }
}

fn finish(reason: &str) -> Result<Finish, Unread> {
    match reason {
        "STOP" | "FINISH_REASON_UNSPECIFIED" => Ok(Finish::Complete),
        "MAX_TOKENS" => Ok(Finish::Length),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Ok(Finish::Filtered),
        // The text before such an end is not an answer.
        other => Err(Unread::Error(ErrorBody::known(
            "server_error",
            &format!("the provider ended the answer with `{other}`"),
        ))),
    }
}

/// A chunk, with its parts either parsed or raw.
#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
struct Chunk<'a, P> {
    #[serde(default = "Option::default")]
    candidates: Option<Vec<Candidate<'a, P>>>,
    #[serde(default, borrow, rename = "promptFeedback")]
    feedback: Option<Feedback<'a>>,
    #[serde(default, borrow, rename = "usageMetadata")]
    usage: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "modelVersion")]
    model: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
struct Candidate<'a, P> {
    #[serde(default = "Option::default")]
    content: Option<Content<P>>,
    #[serde(default, borrow, rename = "finishReason")]
    finish_reason: Option<Cow<'a, str>>,
    #[serde(default, borrow, rename = "groundingMetadata")]
    grounding: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "urlContextMetadata")]
    pages: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
struct Content<P> {
    #[serde(default = "Option::default")]
    parts: Option<Vec<P>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(default, borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default, borrow, rename = "functionCall")]
    function_call: Option<Called<'a>>,
    #[serde(default, borrow, rename = "thoughtSignature")]
    signature: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Feedback<'a> {
    #[serde(default, borrow, rename = "blockReason")]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
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
fn usage(raw: Option<&RawValue>) -> Option<Usage> {
    let tokens: Tokens = serde_json::from_str(raw?.get()).ok()?;
    let reasoning = tokens.thoughts_token_count.unwrap_or(0);
    Some(Usage {
        input: tokens.prompt_token_count?.saturating_add(tokens.tool_use_prompt_token_count.unwrap_or(0)),
        cached: tokens.cached_content_token_count.unwrap_or(0),
        cache_write: 0,
        output: tokens.candidates_token_count.unwrap_or(0).saturating_add(reasoning),
        reasoning,
    })
}
