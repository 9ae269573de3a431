//! Writes a row as a session in Codex's format: one record per line.

use rowmill_core::record::{
    LowRatingReport, RedactedTraceFacts, RowTrace, TracedConversation, TracedFile, TracedMessageRole,
    TracedTurn,
};
use rowmill_types::{FinishReason, TokenUsage};
use serde::Serialize;

use super::codex_records::{
    FunctionOutput, Instructions, SessionAnnotation, SessionContent, SessionEvent, SessionItem, SessionMeta,
    SessionRecord, SessionTokenUsage, TokenCounts, TurnContext,
};
use super::otel_names;
use super::timed_messages::{TimedMessage, timed_messages};

/// The sessions have no working directory.
const FOLDER: &str = ".";

/// Appends all records of a row and returns their number.
pub(super) fn write_session(row: &RowTrace<'_>, settings: &RedactedTraceFacts, out: &mut Vec<u8>) -> u64 {
    let mut session =
        SessionWriter { row, settings, out, records: 0, tasks: 0, total: TokenUsage::default() };
    session.begin();
    for (place, conversation) in row.conversations.iter().enumerate() {
        session.write_record(conversation, place + 1 == row.conversations.len());
    }
    session.records
}

/// Everything from one user message up to the next one.
struct SessionTask<'t> {
    id: String,
    started: u64,
    completed: u64,
    last_message: Option<&'t str>,
}

struct SessionWriter<'t, 'a> {
    row: &'t RowTrace<'a>,
    settings: &'t RedactedTraceFacts,
    out: &'t mut Vec<u8>,
    records: u64,
    tasks: u64,
    total: TokenUsage,
}

impl<'t, 'a> SessionWriter<'t, 'a> {
    fn begin(&mut self) {
        let (row, settings) = (self.row, self.settings);
        let first = row.conversations.first();
        let model = first.map(|first| &*first.model).filter(|model| !model.is_empty());
        let meta = SessionMeta {
            id: format!("{}-row-{:06}", settings.run_id(), row.row_number),
            timestamp: timestamp(row.start),
            cwd: FOLDER,
            originator: "rowmill",
            cli_version: env!("CARGO_PKG_VERSION"),
            source: "cli",
            model_provider: model.and_then(otel_names::provider),
            model_spec: model,
            base_instructions: first.and_then(|first| self.system(first)).map(|text| Instructions { text }),
            agent: settings.entry_agent_name(),
            run_id: settings.run_id(),
            row_number: row.row_number,
            row_id: &row.id,
        };
        self.push(row.start, "session_meta", &meta);
    }

    fn system(&self, conversation: &TracedConversation<'_>) -> Option<&'t str> {
        conversation.system.as_deref().and_then(|digest| self.settings.instruction_by_digest(digest))
    }

    fn write_record(&mut self, conversation: &'t TracedConversation<'a>, is_last: bool) {
        let messages = timed_messages(self.row, conversation);
        let began = messages.first().map_or(self.row.start, |messages| messages.at);
        if let Some(text) = self.system(conversation) {
            let content = vec![SessionContent::InputText { text: text.into() }];
            self.item(
                began,
                &SessionItem::Message { role: "developer", content, end_turn: None, finish_reason: None },
            );
        }
        let mut task = None;
        for messages in &messages {
            if messages.message.role == TracedMessageRole::User {
                self.finish(task.take());
            }
            let task = task.get_or_insert_with(|| self.start(conversation, messages));
            task.completed = task.completed.max(messages.at);
            match messages.message.role {
                TracedMessageRole::User => self.user(messages),
                TracedMessageRole::Assistant => {
                    self.assistant(messages);
                    if !messages.message.text.is_empty() {
                        task.last_message = Some(&messages.message.text);
                    }
                }
                TracedMessageRole::Tool => self.tool(messages),
            }
        }
        for LowRatingReport { agent, rating, min_rating } in
            self.row.below_min_rating.iter().filter(|_| is_last)
        {
            let message = format!(
                "`{agent}` gave an answer that is rated {rating}, below its `min_rating` {min_rating}"
            );
            self.push(self.row.end, "event_msg", &SessionEvent::Warning { message: &message });
        }
        if let (Some(error), true) = (&self.row.error, is_last) {
            let event = SessionEvent::Error { message: &error.message, error_type: &error.kind };
            self.push(self.row.end, "event_msg", &event);
        }
        self.finish(task);
    }

    fn start(
        &mut self,
        conversation: &'t TracedConversation<'a>,
        timed: &TimedMessage<'t, 'a>,
    ) -> SessionTask<'t> {
        self.tasks += 1;
        let id = format!("turn-{}", self.tasks);
        let started = SessionEvent::TaskStarted {
            turn_id: &id,
            started_at: seconds(timed.at),
            collaboration_mode_kind: "default",
        };
        self.push(timed.at, "event_msg", &started);
        if timed.message.role == TracedMessageRole::User {
            let message = SessionEvent::UserMessage {
                message: &timed.message.text,
                local_images: [],
                text_elements: [],
            };
            self.push(timed.at, "event_msg", &message);
        }
        let model = conversation.turns.first().map_or(&conversation.model, |turn| &turn.model);
        let context = TurnContext {
            turn_id: &id,
            cwd: FOLDER,
            timezone: "UTC",
            summary: "auto",
            current_date: time(timed.at).strftime("%Y-%m-%d").to_string(),
            model,
            model_spec: &conversation.model,
            agent: &conversation.agent,
        };
        self.push(timed.at, "turn_context", &context);
        SessionTask { id, started: timed.at, completed: timed.at, last_message: None }
    }

    fn finish(&mut self, task: Option<SessionTask<'_>>) {
        let Some(SessionTask { id, started, completed, last_message }) = task else { return };
        let event = SessionEvent::TaskComplete {
            turn_id: &id,
            last_agent_message: last_message,
            completed_at: seconds(completed),
            duration_ms: completed.saturating_sub(started) / 1_000_000,
        };
        self.push(completed, "event_msg", &event);
    }

    fn user(&mut self, timed: &TimedMessage<'t, 'a>) {
        let mut content = vec![SessionContent::InputText { text: (&*timed.message.text).into() }];
        content.extend(timed.message.files.iter().map(file));
        self.item(
            timed.at,
            &SessionItem::Message { role: "user", content, end_turn: None, finish_reason: None },
        );
    }

    fn assistant(&mut self, timed: &TimedMessage<'t, 'a>) {
        let TimedMessage { message, at, turn, .. } = timed;
        let hosted = turn.and_then(|turn| turn.hosted_tools.as_deref());
        for (tool, uses) in hosted.map(|hosted| hosted.uses.as_slice()).unwrap_or_default() {
            self.item(*at, &SessionItem::WebSearchCall { status: "completed", tool, uses: *uses });
        }
        let finish = turn.map_or(FinishReason::Complete, |turn| turn.finish);
        let calls_tools = !message.calls.is_empty();
        // A turn that only calls tools has no text, but an empty answer is a message too.
        if !message.text.is_empty() || !calls_tools {
            let citations = hosted.map(|hosted| hosted.citations.as_slice()).unwrap_or_default();
            let annotations =
                citations.iter().map(|citation| SessionAnnotation::UrlCitation { citation }).collect();
            let item = SessionItem::Message {
                role: "assistant",
                content: vec![SessionContent::OutputText { text: &message.text, annotations }],
                end_turn: (finish == FinishReason::Complete && !calls_tools).then_some(true),
                finish_reason: (finish != FinishReason::Complete)
                    .then(|| otel_names::finish_reason(finish, calls_tools)),
            };
            self.item(*at, &item);
        }
        for call in &message.calls {
            let item =
                SessionItem::FunctionCall { name: &call.name, arguments: &call.arguments, call_id: &call.id };
            self.item(*at, &item);
        }
        if let Some(turn) = turn {
            self.count(turn);
        }
    }

    fn tool(&mut self, timed: &TimedMessage<'t, 'a>) {
        let message = timed.message;
        let output = if message.files.is_empty() {
            FunctionOutput::Text(&message.text)
        } else {
            let mut parts = vec![SessionContent::InputText { text: (&*message.text).into() }];
            parts.extend(message.files.iter().map(file));
            FunctionOutput::Parts(parts)
        };
        let status = if message.is_error { "error" } else { "success" };
        let call_id = message.answers.as_deref().unwrap_or_default();
        self.item(timed.at, &SessionItem::FunctionCallOutput { call_id, output, status });
    }

    fn count(&mut self, turn: &TracedTurn<'_>) {
        let Some(usage) = turn.usage else { return };
        self.total += usage;
        let info = TokenCounts {
            total_token_usage: tokens(&self.total),
            last_token_usage: tokens(&usage),
            cost_usd: turn.cost_usd,
        };
        self.push(turn.end, "event_msg", &SessionEvent::TokenCount { info });
    }

    fn item(&mut self, at: u64, item: &SessionItem<'_>) {
        self.push(at, "response_item", item);
    }

    fn push<P: Serialize>(&mut self, at: u64, kind: &'static str, payload: &P) {
        let record = SessionRecord { timestamp: timestamp(at), kind, payload };
        let written = serde_json::to_writer(&mut *self.out, &record);
        debug_assert!(written.is_ok(), "texts and numbers are always JSON");
        self.out.push(b'\n');
        self.records += 1;
    }
}

/// Traces do not contain the bytes of files; this names the file.
fn file<'t>(file: &'t TracedFile<'_>) -> SessionContent<'t> {
    let TracedFile { name, media_type, digest } = file;
    SessionContent::InputText { text: format!("[file `{name}`, {media_type}, sha256 {digest}]").into() }
}

fn tokens(usage: &TokenUsage) -> SessionTokenUsage {
    SessionTokenUsage {
        input_tokens: usage.input,
        cached_input_tokens: usage.cached,
        output_tokens: usage.output,
        reasoning_output_tokens: usage.reasoning,
        total_tokens: usage.input.saturating_add(usage.output),
    }
}

fn time(nanoseconds: u64) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or(jiff::Timestamp::MAX)
}

fn timestamp(nanoseconds: u64) -> String {
    time(nanoseconds).strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn seconds(nanoseconds: u64) -> u64 {
    nanoseconds / 1_000_000_000
}
