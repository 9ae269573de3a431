//! The records of sessions in Codex's format.

use std::borrow::Cow;

use rowmill_core::record::TracedRowId;
use rowmill_types::Citation;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct SessionRecord<'a, P> {
    pub(super) timestamp: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) payload: &'a P,
}

#[derive(Serialize)]
pub(super) struct SessionMeta<'a> {
    pub(super) id: String,
    pub(super) timestamp: String,
    pub(super) cwd: &'static str,
    pub(super) originator: &'static str,
    pub(super) cli_version: &'static str,
    pub(super) source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model_provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model_spec: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_instructions: Option<Instructions<'a>>,
    pub(super) agent: &'a str,
    pub(super) run_id: &'a str,
    pub(super) row_number: u64,
    pub(super) row_id: &'a TracedRowId<'a>,
}

#[derive(Serialize)]
pub(super) struct Instructions<'a> {
    pub(super) text: &'a str,
}

#[derive(Serialize)]
pub(super) struct TurnContext<'a> {
    pub(super) turn_id: &'a str,
    pub(super) cwd: &'static str,
    pub(super) timezone: &'static str,
    pub(super) summary: &'static str,
    pub(super) current_date: String,
    pub(super) model: &'a str,
    pub(super) model_spec: &'a str,
    pub(super) agent: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SessionEvent<'a> {
    TaskStarted {
        turn_id: &'a str,
        started_at: u64,
        collaboration_mode_kind: &'static str,
    },
    UserMessage {
        message: &'a str,
        local_images: [&'a str; 0],
        text_elements: [&'a str; 0],
    },
    TokenCount {
        info: TokenCounts,
    },
    Warning {
        message: &'a str,
    },
    Error {
        message: &'a str,
        error_type: &'a str,
    },
    TaskComplete {
        turn_id: &'a str,
        last_agent_message: Option<&'a str>,
        completed_at: u64,
        duration_ms: u64,
    },
}

#[derive(Serialize)]
pub(super) struct TokenCounts {
    pub(super) total_token_usage: SessionTokenUsage,
    pub(super) last_token_usage: SessionTokenUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<rowmill_types::Money>,
}

#[derive(Serialize)]
pub(super) struct SessionTokenUsage {
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) reasoning_output_tokens: u64,
    pub(super) total_tokens: u64,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SessionItem<'a> {
    Message {
        role: &'static str,
        content: Vec<SessionContent<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end_turn: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<&'static str>,
    },
    FunctionCall {
        name: &'a str,
        arguments: &'a str,
        call_id: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: FunctionOutput<'a>,
        status: &'static str,
    },
    WebSearchCall {
        status: &'static str,
        tool: &'a str,
        uses: u64,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum FunctionOutput<'a> {
    Text(&'a str),
    Parts(Vec<SessionContent<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SessionContent<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    OutputText {
        text: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        annotations: Vec<SessionAnnotation<'a>>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SessionAnnotation<'a> {
    UrlCitation {
        #[serde(flatten)]
        citation: &'a Citation,
    },
}
