//! One turn with a model: what is asked and what comes back.

use serde::{Deserialize, Serialize};

use crate::{Answered, Attachment, CallTiming, Echo, Hosted, RateLimits, ToolCall, ToolOutput, Usage};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The row's prompt, or feedback about an answer.
    User,
    /// What the model said before.
    Assistant,
    /// What a tool gave for a call of the model.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
    /// The files that are sent with it, in order.
    pub attachments: Vec<Attachment>,
    /// The tools that a message of the model calls, in order.
    pub calls: Vec<ToolCall>,
    /// The call that a message of a tool answers.
    pub answers: Option<Box<Answered>>,
    /// A message of the model as its provider sent it, where that must be sent back.
    pub echo: Option<Box<Echo>>,
}

impl Message {
    /// A message to the model.
    pub fn user(text: impl Into<String>) -> Self {
        Self::of(Role::User, text.into())
    }

    /// A message that the model gave.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::of(Role::Assistant, text.into())
    }

    /// What a tool gave for a call.
    #[must_use]
    pub fn tool(call: &ToolCall, output: ToolOutput) -> Self {
        let ToolOutput { text, attachments, is_error, .. } = output;
        let answers = Answered { call: call.id.clone(), tool: call.name.clone(), is_error };
        Self { attachments, answers: Some(Box::new(answers)), ..Self::of(Role::Tool, text) }
    }

    fn of(role: Role, text: String) -> Self {
        Self { role, text, attachments: Vec::new(), calls: Vec::new(), answers: None, echo: None }
    }
}

/// One turn to be answered. What is the same for every row (instruction,
/// schema, parameters) is in the model already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Names the run, the row and the turn, and `output_cap` where there is one; the same for
    /// every try, and sent as an idempotency key where the provider has one.
    pub key: String,
    /// The number of the row.
    pub row: u64,
    /// Which try at this turn it is, counted from 1.
    pub attempt: u32,
    /// The most tokens that the answer may have, where that is chosen for this call alone. It is
    /// set only for models that are known to keep to it, and takes the place of what they would
    /// send by themselves.
    pub output_cap: Option<u64>,
    /// The conversation so far; the last message is the user's or a tool's.
    pub messages: Vec<Message>,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    /// The model was done.
    Complete,
    /// The token limit cut it.
    Length,
    /// A content filter stopped it.
    Filtered,
    /// The model refused; the text is its refusal.
    Refused,
    /// The provider paused a long turn: it continues when the answer is sent back as it is.
    Paused,
}

/// What a model answered.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The text, or as much of it as came.
    pub text: String,
    /// How it ended.
    pub finish: Finish,
    /// The tools that the model wants called before it continues.
    pub calls: Vec<ToolCall>,
    /// The answer as the provider sent it, where it must be sent back like that.
    pub echo: Option<Box<Echo>>,
    /// What tools did that run at the provider.
    pub hosted: Option<Box<Hosted>>,
    /// Tokens, where the provider told.
    pub usage: Option<Usage>,
    /// The provider's own account of the usage, as it sent it.
    pub raw_usage: Option<Box<serde_json::value::RawValue>>,
    /// How long it took.
    pub timing: CallTiming,
    /// The model that answered, where the provider told.
    pub model: Option<String>,
    /// The service tier that was granted, where the provider told.
    pub service_tier: Option<String>,
    /// The rate limits that the provider told with the answer.
    pub rates: Option<Box<RateLimits>>,
    /// What was found out about the answer beyond its schema, if anybody looked.
    pub verdict: Option<Box<AnswerVerdict>>,
}

/// What a check of an answer found that goes beyond its JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerVerdict {
    /// The answer holds; its JSON text, with what the check filled in.
    Valid(String),
    /// What is wrong with it, one sentence each.
    Invalid(Vec<String>),
    /// It could not be checked, and why.
    Unchecked(String),
}

impl Completion {
    /// A complete answer of which nothing else is known.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            finish: Finish::Complete,
            calls: Vec::new(),
            echo: None,
            hosted: None,
            usage: None,
            raw_usage: None,
            timing: CallTiming::default(),
            model: None,
            service_tier: None,
            rates: None,
            verdict: None,
        }
    }
}
