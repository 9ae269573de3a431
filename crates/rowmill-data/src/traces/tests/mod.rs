//! Traces of sample rows, on a real disk.

mod any;
mod forms;
mod keeping;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rowmill_core::agent::{
    CallingConversation, ConversationTranscript, RowTranscript, ToolCallDetails, TurnDetails,
};
use rowmill_core::ports::RecordSink;
use rowmill_core::record::{
    EnvelopeInput, RedactedTraceFacts, RowRecord, RowReport, RowTraceData, TraceFacts, TracedModelRole,
};
use rowmill_core::redact::Redactor;
use rowmill_types::{
    Attachment, Citation, FinishReason, HostedToolUse, Message, Money, RowError, RowErrorKind, RowId, Secret,
    TokenUsage, ToolCall, ToolOutput,
};
use serde_json::Value;

use super::*;
use crate::output::OutputClaimMode;

pub(super) const KEY: &str = "sk-planted-0042/+\"x";

pub(super) fn settings() -> Arc<RedactedTraceFacts> {
    let model_role = |system: Option<&str>| TracedModelRole {
        model: "google.gemini-x?temperature=0".into(),
        system: system.map(Into::into),
    };
    let facts = TraceFacts {
        run: "20260101T000000Z-0badcafe".into(),
        agent: "lead".into(),
        started: Duration::from_secs(1_767_225_600),
        agents: vec!["lead".into(), "helper".into()],
        model_roles: vec![model_role(Some(&format!("Be short, {KEY}."))), model_role(None)],
    };
    Arc::new(RedactedTraceFacts::new(facts, Redactor::new([&Secret::new(KEY)]).unwrap()))
}

pub(super) fn turn(start: u64, end: u64) -> TurnDetails {
    TurnDetails {
        start: Duration::from_millis(start),
        end: Duration::from_millis(end),
        model: "gemini-x-001".into(),
        usage: Some(TokenUsage { input: 100, cached: 10, cache_write: 1, output: 20, reasoning: 5 }),
        cost: Money::from_dollars(0.25),
        finish: FinishReason::Complete,
        hosted: None,
    }
}

/// Two tool calls in one turn, an answer, and a helper that was called meanwhile.
pub(super) fn transcript() -> RowTranscript {
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let (read, head_of_dataset) = (call("c1", "fs__read", r#"{"path":"a"}"#), call("c2", "look", "{broken"));
    let file = Attachment {
        name: "a.png".into(),
        media_type: "image/png".into(),
        bytes: Bytes::from_static(b"never in a trace"),
        digest: "00ff".into(),
    };
    let mut question = Message::user(format!("What is in {KEY}?"));
    question.attachments.push(file.clone());
    let mut asking = Message::assistant("Let me see.");
    asking.calls = vec![read.clone(), head_of_dataset.clone()];
    let seen = ToolOutput { attachments: vec![file], ..ToolOutput::from_text(format!("it says {KEY}")) };
    let citations = vec![Citation { url: "https://x/".into(), title: Some("X".into()), text: None }];
    let hosted = HostedToolUse { citations, uses: vec![("web_search".into(), 2)] };
    let tool = |call: &ToolCall, start, end, is_error| ToolCallDetails {
        call: call.id.clone(),
        tool: call.name.clone(),
        start: Duration::from_millis(start),
        end: Duration::from_millis(end),
        is_error,
    };
    let lead = ConversationTranscript {
        agent_index: 0,
        model_role: 0,
        caller: None,
        messages: vec![
            Message::user("an example"),
            Message::assistant("an answer"),
            question,
            asking,
            Message::tool(&read, seen),
            Message::tool(&head_of_dataset, ToolOutput::error("the arguments are no JSON")),
            Message::assistant("Nothing."),
        ],
        turns: vec![turn(10, 20), TurnDetails { hosted: Some(Box::new(hosted)), ..turn(40, 50) }],
        tools: vec![tool(&head_of_dataset, 21, 22, true), tool(&read, 21, 30, false)],
    };
    let helper = ConversationTranscript {
        agent_index: 1,
        model_role: 1,
        caller: Some(CallingConversation { conversation: 0, call: Some("c1".into()) }),
        messages: vec![Message::user("Help."), Message::assistant("Yes.")],
        turns: vec![turn(21, 29)],
        tools: Vec::new(),
    };
    RowTranscript { conversations: vec![lead, helper] }
}

pub(super) fn record(
    id: &RowId,
    number: u64,
    outcome: &Result<String, RowError>,
    message: Option<&RowTranscript>,
    settings: &RedactedTraceFacts,
) -> RowRecord {
    let record = RowRecord::from_report(&RowReport {
        id,
        number,
        outcome,
        input: EnvelopeInput::Absent,
        start: Duration::from_millis(5),
        end: Duration::from_millis(60),
        calls: &[],
        tools: &[],
        below_min_rating: &[],
        reused: None,
        reusable: None,
        trace: Some(RowTraceData { transcript: message, settings }),
    });
    RowRecord::parse(record.line).unwrap()
}

pub(super) fn ok() -> Result<String, RowError> {
    Ok("1".into())
}

pub(super) fn failed(kind: RowErrorKind) -> Result<String, RowError> {
    Err(RowError::new(kind, format!("cannot use {KEY}")))
}

pub(super) fn open(path: &Path, claim: OutputClaimMode) -> TraceSink {
    TraceFolder::claim(path, claim).unwrap().sink(settings()).unwrap()
}

pub(super) fn publish(sink: &mut TraceSink, record: &RowRecord) {
    sink.publish(record.parts_for_sinks()).unwrap();
}

/// Every file by its name.
pub(super) fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

pub(super) fn lines(path: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(path.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(super) fn spans(line: &Value) -> &Vec<Value> {
    line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap()
}

pub(super) fn attribute<'v>(span: &'v Value, key: &str) -> &'v Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == key);
    &found.unwrap_or_else(|| panic!("{key} is not in {span}"))["value"]
}

/// A single row with every feature.
pub(super) fn one_row() -> (tempfile::TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    let (settings, message) = (settings(), transcript());
    let mut sink = open(home.path(), OutputClaimMode::New);
    publish(&mut sink, &record(&RowId::Text("a/b".into()), 3, &ok(), Some(&message), &settings));
    (home, "row-000003__id-a_b__lead.codex.jsonl".to_owned())
}
