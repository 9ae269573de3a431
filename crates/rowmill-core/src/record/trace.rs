//! The trace data of a row: all messages and tool calls, without secrets.
//!
//! It is part of the row's line in the ledger, in a format of its own, so that trace files in any format can be made
//! from it, also after a crash.

use std::borrow::Cow;

use rowmill_types::{
    Attachment, Citation, FinishReason, HostedToolUse, Message, MessageRole, Money, RowId, TokenUsage,
    ToolCall,
};
use serde::{Deserialize, Serialize};

use super::LowRatingReport;
use super::envelope::write_json;
use super::row_record::RowReport;
use super::settings::RedactedTraceFacts;
use crate::agent::{ConversationTranscript, RowTranscript, ToolCallDetails, TurnDetails};
use crate::redact::Redactor;

/// The data for the trace of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowTraceData<'a> {
    /// The transcript; `None` if the row ended before its first call.
    pub transcript: Option<&'a RowTranscript>,
    /// The settings that are the same for every row.
    pub settings: &'a RedactedTraceFacts,
}

/// Everything that is known about a row. Times are nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowTrace<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: TracedRowId<'a>,
    /// Its number.
    pub row_number: u64,
    /// Whether it is ok.
    pub ok: bool,
    /// When work on it began; 0 if unknown.
    #[serde(default)]
    pub start: u64,
    /// When it ended.
    #[serde(default)]
    pub end: u64,
    /// Why it failed, if it did.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TracedError<'a>>,
    /// Where its answer came from, if no call was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<Cow<'a, str>>,
    /// Answers that were given although they are rated lower than requested.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub below_min_rating: Cow<'a, [LowRatingReport]>,
    /// The conversations with models, in the order in which they began.
    #[serde(borrow, default)]
    pub conversations: Vec<TracedConversation<'a>>,
}

/// The id of a row. One that contains a secret is replaced by the row's number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TracedRowId<'a> {
    /// The row number.
    Number(u64),
    /// A text.
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

/// Why a row failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedError<'a> {
    /// The kind of failure.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// The message.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

/// One agent's conversation with its model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TracedConversation<'a> {
    /// The name of the agent.
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    /// The model string.
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    /// The digest of the instruction, for [`RedactedTraceFacts::instruction_by_digest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Cow<'a, str>>,
    /// The caller, if another agent caused this conversation.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<TracedConversationCaller<'a>>,
    /// All messages, in order.
    #[serde(borrow)]
    pub messages: Vec<TracedMessage<'a>>,
    /// The model calls, in order. They correspond to the last messages of the assistant, one each.
    #[serde(borrow)]
    pub turns: Vec<TracedTurn<'a>>,
    /// The tool calls, in the order in which they ended.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<TracedToolCall<'a>>,
}

/// The conversation that caused another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedConversationCaller<'a> {
    /// Its index among the conversations of the row.
    pub conversation: usize,
    /// The id of the causing call, if the other agent was called as a tool.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Cow<'a, str>>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TracedMessageRole {
    /// The row's prompt, a request of another agent, or feedback.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedMessage<'a> {
    /// Its author.
    pub role: TracedMessageRole,
    /// Its text.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    /// The files that were sent with it.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<TracedFile<'a>>,
    /// The tools that the model calls.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TracedToolRequest<'a>>,
    /// The id of the call that a tool answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Cow<'a, str>>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A file, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedFile<'a> {
    /// Its name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Its media type.
    #[serde(borrow)]
    pub media_type: Cow<'a, str>,
    /// The SHA-256 of its bytes.
    #[serde(borrow)]
    pub digest: Cow<'a, str>,
}

/// A call that a model requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedToolRequest<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The tool.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// JSON text as the model wrote it.
    #[serde(borrow)]
    pub arguments: Cow<'a, str>,
}

/// A model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TracedTurn<'a> {
    /// When it was sent.
    pub start: u64,
    /// When its answer arrived.
    pub end: u64,
    /// The model that answered.
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    /// Tokens, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The cost, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Money>,
    /// The finish reason of the answer.
    pub finish: FinishReason,
    /// Activity of tools at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hosted")]
    pub hosted_tools: Option<Box<HostedToolUse>>,
}

/// A tool call that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedToolCall<'a> {
    /// The id of the call.
    #[serde(borrow)]
    pub call: Cow<'a, str>,
    /// The tool.
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
    /// When it was called.
    pub start: u64,
    /// When it returned.
    pub end: u64,
    /// Whether it failed.
    pub is_error: bool,
}

pub(super) fn write_trace(out: &mut Vec<u8>, report: &RowReport<'_>, trace: RowTraceData<'_>) {
    write_json(out, &RowTrace::of(report, trace));
}

impl<'a> RowTrace<'a> {
    fn of(report: &RowReport<'a>, trace: RowTraceData<'a>) -> Self {
        let RowTraceData { transcript, settings } = trace;
        let redactor = settings.redactor();
        let reported = transcript.map(|transcript| transcript.conversations.as_slice()).unwrap_or_default();
        Self {
            id: id(report.id, report.number, redactor),
            row_number: report.number,
            ok: report.outcome.is_ok(),
            start: settings.unix_nanoseconds(report.start),
            end: settings.unix_nanoseconds(report.end),
            error: report.outcome.as_ref().err().map(|error| TracedError {
                kind: error.kind.name().into(),
                message: redactor.redact(&error.message),
            }),
            reused: report.reused.map(|reused| reused.name().into()),
            below_min_rating: report.below_min_rating.into(),
            conversations: reported
                .iter()
                .map(|reported| TracedConversation::of(reported, settings))
                .collect(),
        }
    }

    /// Parses the trace data of a record.
    ///
    /// # Errors
    ///
    /// It was not written by [`RowTrace`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The data that an envelope contains, for a row that ended while no traces were kept.
    ///
    /// # Errors
    ///
    /// It is not an envelope.
    pub fn from_envelope(envelope: &'a [u8], redactor: &Redactor) -> Result<Self, serde_json::Error> {
        let mut trace = Self::parse(envelope)?;
        let number = trace.row_number;
        if let TracedRowId::Text(text) = &mut trace.id {
            clean(text, redactor, |hidden| with_number(hidden, number));
        }
        if let Some(error) = &mut trace.error {
            clean(&mut error.message, redactor, |hidden| hidden);
        }
        Ok(trace)
    }
}

/// Removes secrets from a text in place.
fn clean(text: &mut Cow<'_, str>, redactor: &Redactor, then: impl Fn(String) -> String) {
    if let Cow::Owned(hidden) = redactor.redact(text) {
        *text = Cow::Owned(then(hidden));
    }
}

/// Two ids that differ only in a secret must remain different.
fn with_number(hidden: String, number: u64) -> String {
    format!("{hidden}#{number}")
}

fn id<'a>(id: &'a RowId, number: u64, redactor: &Redactor) -> TracedRowId<'a> {
    match id {
        RowId::Number(number) => TracedRowId::Number(*number),
        RowId::Text(text) => TracedRowId::Text(match redactor.redact(text) {
            Cow::Owned(hidden) => with_number(hidden, number).into(),
            known => known,
        }),
    }
}

impl<'a> TracedConversation<'a> {
    fn of(reported: &'a ConversationTranscript, settings: &'a RedactedTraceFacts) -> Self {
        let redactor = settings.redactor();
        Self {
            agent: settings.agent_name(reported.agent_index).into(),
            model: settings.model_of_role(reported.model_role).into(),
            system: settings.system_digest(reported.model_role).map(Into::into),
            caller: reported.caller.as_ref().map(|caller| TracedConversationCaller {
                conversation: caller.conversation,
                call: caller.call.as_deref().map(|call| redactor.redact(call)),
            }),
            messages: reported.messages.iter().map(|message| TracedMessage::of(message, redactor)).collect(),
            turns: reported.turns.iter().map(|turn| TracedTurn::of(turn, settings)).collect(),
            tools: reported.tools.iter().map(|tool| TracedToolCall::of(tool, settings)).collect(),
        }
    }
}

impl<'a> TracedMessage<'a> {
    fn of(message: &'a Message, redactor: &Redactor) -> Self {
        let file = |file: &'a Attachment| TracedFile {
            name: redactor.redact(&file.name),
            media_type: redactor.redact(&file.media_type),
            digest: file.digest.as_str().into(),
        };
        let call = |call: &'a ToolCall| TracedToolRequest {
            id: redactor.redact(&call.id),
            name: redactor.redact(&call.name),
            arguments: redactor.redact(&call.arguments),
        };
        Self {
            role: match message.role {
                MessageRole::User => TracedMessageRole::User,
                MessageRole::Assistant => TracedMessageRole::Assistant,
                MessageRole::Tool => TracedMessageRole::Tool,
            },
            text: redactor.redact(&message.text),
            files: message.attachments.iter().map(file).collect(),
            calls: message.calls.iter().map(call).collect(),
            answers: message.answered_call.as_ref().map(|answered| redactor.redact(&answered.call)),
            is_error: message.answered_call.as_ref().is_some_and(|answered| answered.is_error),
        }
    }
}

impl<'a> TracedTurn<'a> {
    fn of(turn: &'a TurnDetails, settings: &RedactedTraceFacts) -> Self {
        Self {
            start: settings.unix_nanoseconds(turn.start),
            end: settings.unix_nanoseconds(turn.end),
            model: settings.redactor().redact(&turn.model),
            usage: turn.usage,
            cost_usd: turn.cost,
            finish: turn.finish,
            hosted_tools: turn
                .hosted
                .as_deref()
                .map(|hosted| Box::new(hosted_of(hosted, settings.redactor()))),
        }
    }
}

impl<'a> TracedToolCall<'a> {
    fn of(tool: &'a ToolCallDetails, settings: &RedactedTraceFacts) -> Self {
        let redactor = settings.redactor();
        Self {
            call: redactor.redact(&tool.call),
            tool: redactor.redact(&tool.tool),
            start: settings.unix_nanoseconds(tool.start),
            end: settings.unix_nanoseconds(tool.end),
            is_error: tool.is_error,
        }
    }
}

fn hosted_of(hosted: &HostedToolUse, redactor: &Redactor) -> HostedToolUse {
    let clean = |text: &String| redactor.redact(text).into_owned();
    let citation = |citation: &Citation| Citation {
        url: clean(&citation.url),
        title: citation.title.as_ref().map(clean),
        text: citation.text.as_ref().map(clean),
    };
    HostedToolUse {
        citations: hosted.citations.iter().map(citation).collect(),
        uses: hosted.uses.iter().map(|(name, count)| (clean(name), *count)).collect(),
    }
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
