//! Writes a row as OpenTelemetry spans, in one line of OTLP/JSON.

use std::borrow::Cow;
use std::collections::HashMap;

use rowmill_core::record::{
    EnvelopeHead, RedactedTraceFacts, RowTrace, TracedConversation, TracedMessageRole, TracedRowId,
};
use rowmill_types::RowId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::message_attributes;
use super::otel_names::{self as names, AttributeValue, SpanAttribute};
use super::timed_messages::{TimedMessage, timed_messages};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtelSpan<'a> {
    trace_id: &'a str,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: Cow<'a, str>,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<SpanAttribute<'a>>,
    status: SpanStatus<'a>,
}

#[derive(Serialize, Default)]
struct SpanStatus<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl SpanStatus<'_> {
    const FAILED: Self = Self { code: Some(names::FAILED), message: None };
}

/// Appends the line of a row, without its newline.
pub(super) fn write_spans(row: &RowTrace<'_>, settings: &RedactedTraceFacts, out: &mut Vec<u8>) {
    let trace_id =
        format!("{:032x}", xxh3_128(format!("{}/{}", settings.run_id(), row.row_number).as_bytes()).max(1));
    let mut spans =
        SpanBuilder { row, settings, trace_id: &trace_id, all: Vec::new(), conversations: Vec::new() };
    spans.add_row();
    for (place, conversation) in row.conversations.iter().enumerate() {
        spans.add_conversation(place, conversation);
    }
    let resource = [
        SpanAttribute::of_text(names::SERVICE, "rowmill"),
        SpanAttribute::of_text(names::SERVICE_VERSION, VERSION),
    ];
    let scope = OtlpScope { name: "rowmill", version: VERSION };
    let line = OtlpLine {
        resource_spans: [ResourceSpans {
            resource: OtlpResource { attributes: &resource },
            scope_spans: [ScopeSpans { scope, spans: &spans.all }],
        }],
    };
    let written = serde_json::to_writer(&mut *out, &line);
    debug_assert!(written.is_ok(), "texts and numbers are always JSON");
}

/// The row that a line belongs to.
pub(super) fn head_of(line: &[u8]) -> Result<EnvelopeHead, serde_json::Error> {
    let missing = |what: &str| serde::de::Error::custom(format!("no {what} in the first span"));
    let line: RawLine<'_> = serde_json::from_slice(line)?;
    let [RawResource { scope_spans: [RawScope { spans }] }] = line.resource_spans;
    let root: RawSpan<'_> = serde_json::from_str(spans.first().ok_or_else(|| missing("row"))?.get())?;
    let mut found: HashMap<Cow<'_, str>, RawAttribute<'_>> =
        root.attributes.into_iter().map(|attribute| (attribute.key, attribute.value)).collect();
    let number = |value: &RawAttribute<'_>| value.int_value.as_deref().and_then(|text| text.parse().ok());
    let id = found.remove(names::ROW_ID).ok_or_else(|| missing(names::ROW_ID))?;
    let row_number =
        found.get(names::ROW_NUMBER).and_then(number).ok_or_else(|| missing(names::ROW_NUMBER))?;
    let id = match (number(&id), id.string_value) {
        (Some(number), _) => RowId::Number(number),
        (None, text) => RowId::Text(text.unwrap_or_default().into()),
    };
    let ok = found.get(names::ROW_OK).and_then(|value| value.bool_value).unwrap_or_default();
    let kind = found.remove(names::ERROR).and_then(|value| value.string_value).unwrap_or_default();
    Ok(EnvelopeHead::new(id, row_number, ok, &kind))
}

struct SpanBuilder<'t, 'a> {
    row: &'t RowTrace<'a>,
    settings: &'t RedactedTraceFacts,
    trace_id: &'t str,
    all: Vec<OtelSpan<'t>>,
    /// The ids of the conversations' spans.
    conversations: Vec<String>,
}

impl<'t, 'a> SpanBuilder<'t, 'a> {
    fn add_row(&mut self) {
        let row = self.row;
        let mut attributes = vec![
            SpanAttribute::of_text(names::RUN, self.settings.run_id()),
            SpanAttribute::of_number(names::ROW_NUMBER, row.row_number),
            match &row.id {
                TracedRowId::Number(number) => SpanAttribute::of_number(names::ROW_ID, *number),
                TracedRowId::Text(text) => SpanAttribute::of_text(names::ROW_ID, &**text),
            },
            SpanAttribute { key: names::ROW_OK, value: AttributeValue::Truth(row.ok) },
            SpanAttribute::of_text(names::AGENT, self.settings.entry_agent_name()),
        ];
        attributes.extend(row.reused.as_deref().map(|reused| SpanAttribute::of_text(names::REUSED, reused)));
        attributes.extend(row.error.as_ref().map(|error| SpanAttribute::of_text(names::ERROR, &*error.kind)));
        if !row.below_min_rating.is_empty() {
            attributes.push(SpanAttribute::of_text(
                names::BELOW_MIN_RATING,
                message_attributes::json(&row.below_min_rating),
            ));
        }
        let status = row
            .error
            .as_ref()
            .map(|error| SpanStatus { message: Some(&error.message), ..SpanStatus::FAILED });
        self.add(None, ("rowmill.row".into(), names::INTERNAL), (row.start, row.end), attributes);
        self.set_status(status);
    }

    fn add_conversation(&mut self, place: usize, conversation: &'t TracedConversation<'a>) {
        let TracedConversation { agent, model, turns, caller, .. } = conversation;
        let start = turns.first().map_or(self.row.start, |turn| turn.start);
        let end = self.end_of(place).unwrap_or(self.row.end);
        let mut attributes = vec![
            SpanAttribute::of_text(names::OPERATION, "invoke_agent"),
            SpanAttribute::of_text(names::AGENT, &**agent),
            SpanAttribute::of_text(names::CONVERSATION, self.conversation_id(place)),
            SpanAttribute::of_text(names::REQUEST_MODEL, &**model),
        ];
        attributes
            .extend(names::provider(model).map(|provider| SpanAttribute::of_text(names::PROVIDER, provider)));
        let system =
            conversation.system.as_deref().and_then(|digest| self.settings.instruction_by_digest(digest));
        attributes.extend(
            system.map(|text| SpanAttribute::of_text(names::SYSTEM, message_attributes::instruction(text))),
        );
        let messages = timed_messages(self.row, conversation);
        if turns.is_empty() {
            let asked = message_attributes::input(messages.iter().map(|messages| messages.message));
            attributes.push(SpanAttribute::of_text(names::INPUT, asked));
        }
        let call = caller.as_ref().and_then(|caller| caller.call.as_deref());
        attributes.extend(call.map(|call| SpanAttribute::of_text(names::TOOL_CALL, call)));
        let parent = caller.as_ref().and_then(|caller| self.conversations.get(caller.conversation));
        let parent = Some(parent.cloned().unwrap_or_else(|| self.root_id()));
        let name = format!("invoke_agent {agent}").into();
        let own = self.add(parent, (name, names::INTERNAL), (start, end), attributes);
        self.conversations.push(own.clone());
        self.add_turns(&own, place, conversation, &messages);
        self.add_tools(&own, conversation, &messages);
    }

    /// The end of a conversation, including everything that it delegated.
    fn end_of(&self, place: usize) -> Option<u64> {
        let all = &self.row.conversations;
        let TracedConversation { turns, tools, .. } = all.get(place)?;
        let own = turns.iter().map(|turn| turn.end).chain(tools.iter().map(|tool| tool.end));
        // Conversations that it delegated to started later, and so come after it.
        let asked =
            all.iter().enumerate().skip(place + 1).filter(|(_, other)| {
                other.caller.as_ref().is_some_and(|caller| caller.conversation == place)
            });
        own.chain(asked.filter_map(|(other, _)| self.end_of(other))).max()
    }

    fn add_turns(
        &mut self,
        parent: &str,
        place: usize,
        conversation: &'t TracedConversation<'a>,
        messages: &[TimedMessage<'t, 'a>],
    ) {
        let mut seen = 0;
        for (at, TimedMessage { message, turn, .. }) in messages.iter().enumerate() {
            let Some(turn) = turn else { continue };
            let asked = messages.get(seen..at).unwrap_or_default();
            seen = at + 1;
            let reason = names::finish_reason(turn.finish, !message.calls.is_empty());
            let mut attributes = vec![
                SpanAttribute::of_text(names::OPERATION, "chat"),
                SpanAttribute::of_text(names::CONVERSATION, self.conversation_id(place)),
                SpanAttribute::of_text(names::REQUEST_MODEL, &*conversation.model),
                SpanAttribute::of_text(names::RESPONSE_MODEL, &*turn.model),
                SpanAttribute {
                    key: names::FINISH_REASONS,
                    value: AttributeValue::List { values: vec![AttributeValue::Text(reason.into())] },
                },
                SpanAttribute::of_text(
                    names::INPUT,
                    message_attributes::input(asked.iter().map(|messages| messages.message)),
                ),
                SpanAttribute::of_text(names::OUTPUT, message_attributes::output(message, reason)),
            ];
            let provider = names::provider(&conversation.model);
            attributes.extend(provider.map(|provider| SpanAttribute::of_text(names::PROVIDER, provider)));
            if let Some(usage) = turn.usage {
                attributes.extend(
                    [
                        (names::INPUT_TOKENS, usage.input),
                        (names::OUTPUT_TOKENS, usage.output),
                        (names::CACHE_READ_TOKENS, usage.cached),
                        (names::CACHE_WRITE_TOKENS, usage.cache_write),
                        (names::REASONING_TOKENS, usage.reasoning),
                    ]
                    .map(|(name, tokens)| SpanAttribute::of_number(name, tokens)),
                );
            }
            let cost = turn.cost_usd.map(|cost| AttributeValue::Number(cost.dollars()));
            attributes.extend(cost.map(|value| SpanAttribute { key: names::COST, value }));
            if let Some(hosted) = &turn.hosted_tools {
                attributes.push(SpanAttribute::of_text(
                    names::CITATIONS,
                    message_attributes::json(&hosted.citations),
                ));
                attributes
                    .push(SpanAttribute::of_text(names::HOSTED, message_attributes::json(&hosted.uses)));
            }
            let name = format!("chat {}", conversation.model).into();
            self.add(Some(parent.to_owned()), (name, names::CLIENT), (turn.start, turn.end), attributes);
        }
    }

    fn add_tools(
        &mut self,
        parent: &str,
        conversation: &'t TracedConversation<'a>,
        messages: &[TimedMessage<'t, 'a>],
    ) {
        for (place, tool) in conversation.tools.iter().enumerate() {
            let answer = messages.iter().position(|messages| messages.tool == Some(place));
            let before = messages.get(..answer.unwrap_or(messages.len())).unwrap_or_default();
            // Ids are unique only within a turn, so this is the last call before the answer.
            let calls =
                before.iter().rev().filter(|messages| messages.message.role == TracedMessageRole::Assistant);
            let call = calls.flat_map(|messages| &messages.message.calls).find(|call| call.id == tool.call);
            let mut attributes = vec![
                SpanAttribute::of_text(names::OPERATION, "execute_tool"),
                SpanAttribute::of_text(names::TOOL, &*tool.tool),
                SpanAttribute::of_text(names::TOOL_TYPE, "function"),
                SpanAttribute::of_text(names::TOOL_CALL, &*tool.call),
            ];
            attributes
                .extend(call.map(|call| SpanAttribute::of_text(names::TOOL_ARGUMENTS, &*call.arguments)));
            let result =
                answer.and_then(|answer| messages.get(answer)).map(|messages| &*messages.message.text);
            attributes.extend(result.map(|text| SpanAttribute::of_text(names::TOOL_RESULT, text)));
            let failure = if answer.is_none() { "outcome_unknown" } else { "tool_error" };
            attributes.extend(tool.is_error.then(|| SpanAttribute::of_text(names::ERROR, failure)));
            let name = format!("execute_tool {}", tool.tool).into();
            self.add(Some(parent.to_owned()), (name, names::INTERNAL), (tool.start, tool.end), attributes);
            self.set_status(tool.is_error.then_some(SpanStatus::FAILED));
        }
    }

    /// Adds a span and returns its id.
    fn add(
        &mut self,
        parent_span_id: Option<String>,
        (name, kind): (Cow<'t, str>, u8),
        (start, end): (u64, u64),
        attributes: Vec<SpanAttribute<'t>>,
    ) -> String {
        let span_id =
            format!("{:016x}", xxh3_64(format!("{}/{}", self.trace_id, self.all.len()).as_bytes()).max(1));
        self.all.push(OtelSpan {
            trace_id: self.trace_id,
            span_id: span_id.clone(),
            parent_span_id,
            name,
            kind,
            start_time_unix_nano: start.to_string(),
            end_time_unix_nano: end.max(start).to_string(),
            attributes,
            status: SpanStatus::default(),
        });
        span_id
    }

    fn set_status(&mut self, status: Option<SpanStatus<'t>>) {
        if let (Some(span), Some(status)) = (self.all.last_mut(), status) {
            span.status = status;
        }
    }

    fn root_id(&self) -> String {
        self.all.first().map(|span| span.span_id.clone()).unwrap_or_default()
    }

    fn conversation_id(&self, place: usize) -> String {
        format!("{}-row-{:06}-{}", self.settings.run_id(), self.row.row_number, place + 1)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpLine<'s, 'a> {
    resource_spans: [ResourceSpans<'s, 'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'s, 'a> {
    resource: OtlpResource<'s, 'a>,
    scope_spans: [ScopeSpans<'s, 'a>; 1],
}

#[derive(Serialize)]
struct OtlpResource<'s, 'a> {
    attributes: &'s [SpanAttribute<'a>],
}

#[derive(Serialize)]
struct ScopeSpans<'s, 'a> {
    scope: OtlpScope,
    spans: &'s [OtelSpan<'a>],
}

#[derive(Serialize)]
struct OtlpScope {
    name: &'static str,
    version: &'static str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLine<'a> {
    #[serde(borrow)]
    resource_spans: [RawResource<'a>; 1],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResource<'a> {
    #[serde(borrow)]
    scope_spans: [RawScope<'a>; 1],
}

#[derive(Deserialize)]
struct RawScope<'a> {
    #[serde(borrow)]
    spans: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawSpan<'a> {
    #[serde(borrow)]
    attributes: Vec<RawPair<'a>>,
}

#[derive(Deserialize)]
struct RawPair<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    value: RawAttribute<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAttribute<'a> {
    string_value: Option<Cow<'a, str>>,
    int_value: Option<Cow<'a, str>>,
    bool_value: Option<bool>,
}
