//! One turn with a model: the request and the answer.

use serde::{Deserialize, Serialize};

use crate::{
    AnsweredToolCall, Attachment, CallTiming, HostedToolUse, NativeMessage, ReportedRateLimits, TokenUsage,
    ToolCall, ToolOutput,
};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// The row's prompt, or feedback about an answer.
    User,
    /// An earlier answer of the model.
    Assistant,
    /// The result of a tool call of the model.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its author.
    pub role: MessageRole,
    /// Its text.
    pub text: String,
    /// The files that are sent with it, in order.
    pub attachments: Vec<Attachment>,
    /// The tool calls in a message of the model, in order.
    pub calls: Vec<ToolCall>,
    /// The call that a message of a tool answers.
    pub answered_call: Option<Box<AnsweredToolCall>>,
    /// A message of the model as its provider sent it, if it must be sent back in that form.
    pub native: Option<Box<NativeMessage>>,
}

impl Message {
    /// A message to the model.
    pub fn user(text: impl Into<String>) -> Self {
        Self::of(MessageRole::User, text.into())
    }

    /// A message from the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::of(MessageRole::Assistant, text.into())
    }

    /// The result of a tool call.
    #[must_use]
    pub fn tool(call: &ToolCall, output: ToolOutput) -> Self {
        let ToolOutput { text, attachments, is_error, .. } = output;
        let answers = AnsweredToolCall { call: call.id.clone(), tool: call.name.clone(), is_error };
        Self { attachments, answered_call: Some(Box::new(answers)), ..Self::of(MessageRole::Tool, text) }
    }

    fn of(role: MessageRole, text: String) -> Self {
        Self { role, text, attachments: Vec::new(), calls: Vec::new(), answered_call: None, native: None }
    }
}

/// One turn to be answered. Everything that is the same for every row (instruction, schema, parameters) is part of the
/// model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Identifies the run, the row and the turn, and `output_cap` if there is one; the same for every attempt, and sent
    /// as an idempotency key if the provider supports one.
    pub key: String,
    /// The number of the row.
    pub row: u64,
    /// The number of the attempt at this turn, counted from 1.
    pub attempt: u32,
    /// The maximum number of tokens of the answer, if it is chosen for this call alone. It is set only for models that
    /// are known to respect it, and replaces the limit that they would send otherwise.
    pub output_cap: Option<u64>,
    /// What the answer is for.
    pub purpose: RequestPurpose,
    /// The conversation so far; the last message is the user's or a tool's.
    pub messages: Vec<Message>,
}

/// What an answer is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestPurpose {
    /// To go on with the row.
    #[default]
    Turn,
    /// To correct an answer that violates the schema.
    Repair,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FinishReason {
    /// The model had finished.
    Complete,
    /// The token limit truncated it.
    Length,
    /// A content filter stopped it.
    Filtered,
    /// The model refused; the text is its refusal.
    Refused,
    /// The provider paused a long turn: it continues when the answer is sent back unchanged.
    Paused,
}

/// A model's answer.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The text, or the part of it that arrived.
    pub text: String,
    /// How it ended.
    pub finish: FinishReason,
    /// The tool calls that the model requests before it continues.
    pub calls: Vec<ToolCall>,
    /// The answer as the provider sent it, if it must be sent back in that form.
    pub native: Option<Box<NativeMessage>>,
    /// Activity of tools that run at the provider.
    pub hosted_tools: Option<Box<HostedToolUse>>,
    /// Tokens, if the provider reported them.
    pub usage: Option<TokenUsage>,
    /// The usage exactly as the provider sent it.
    pub raw_usage: Option<Box<serde_json::value::RawValue>>,
    /// How long it took.
    pub timing: CallTiming,
    /// The model that answered, if the provider reported it.
    pub model: Option<String>,
    /// The service tier that was granted, if the provider reported it.
    pub service_tier: Option<String>,
    /// The rate limits that the provider reported with the answer.
    pub rate_limits: Option<Box<ReportedRateLimits>>,
    /// The result of a check beyond the schema, if there was one.
    pub verdict: Option<Box<AnswerVerdict>>,
    /// The batch job that it comes from; `None` for a live call.
    pub batch: Option<Box<BatchAnswerOrigin>>,
}

/// Where an answer of the batch lane comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchAnswerOrigin {
    /// The provider's id of the job.
    pub job: String,
    /// The pass over the input in which the request was made, counted from 1.
    pub round: u32,
    /// The attempt at the request, counted from 1.
    pub attempt: u32,
    /// Whether an earlier pass has counted what it cost: the row met it before, and was parked again.
    #[serde(skip)]
    pub is_counted: bool,
}

/// The result of a check of an answer that goes beyond its JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerVerdict {
    /// The answer is valid; its JSON text, including defaults that the check filled in.
    Valid(String),
    /// Its errors, one sentence each.
    Invalid(Vec<String>),
    /// It could not be checked, with the reason.
    Unchecked(String),
}

impl Completion {
    /// A complete answer with nothing but a text.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            finish: FinishReason::Complete,
            calls: Vec::new(),
            native: None,
            hosted_tools: None,
            usage: None,
            raw_usage: None,
            timing: CallTiming::default(),
            model: None,
            service_tier: None,
            rate_limits: None,
            verdict: None,
            batch: None,
        }
    }
}
