use std::time::Duration;

use bytes::Bytes;
use rowmill_types::{RowError, RowErrorKind, Secret, ToolOutput};

use super::*;
use crate::record::{EnvelopeInput, RowRecord, TraceFacts, TracedModelRole};

const KEY: &str = "sk-planted-0042";

fn settings() -> RedactedTraceFacts {
    let redactor = Redactor::new([&Secret::new(KEY)]).unwrap();
    let model_role = |system: &str| TracedModelRole { model: "openai.m".into(), system: Some(system.into()) };
    let facts = TraceFacts {
        run: "run-1".into(),
        agent: "lead".into(),
        started: Duration::from_secs(1_000),
        agents: vec!["lead".into(), format!("helper {KEY}")],
        model_roles: vec![model_role("Be short."), model_role(&format!("Use {KEY}."))],
    };
    RedactedTraceFacts::new(facts, redactor)
}

fn transcript() -> RowTranscript {
    let secret = |text: &str| format!("{text} {KEY}");
    let call = ToolCall { id: secret("c1"), name: secret("read"), arguments: secret("{\"path\":\"a\"}") };
    let file = Attachment {
        name: secret("a.txt"),
        media_type: "text/plain".into(),
        bytes: Bytes::from_static(b"the bytes stay out"),
        digest: "d1".into(),
    };
    let mut question = Message::user(secret("What is it?"));
    question.attachments.push(file);
    let mut asking = Message::assistant("");
    asking.calls.push(call.clone());
    let citation = Citation { url: secret("https://x/"), title: Some(secret("t")), text: Some(secret("p")) };
    let turn = TurnDetails {
        start: Duration::from_millis(1),
        end: Duration::from_millis(5),
        model: secret("m-1"),
        usage: Some(TokenUsage { input: 9, output: 3, ..TokenUsage::default() }),
        cost: Some(Money::from_pico(2_000_000)),
        finish: FinishReason::Complete,
        hosted: Some(Box::new(HostedToolUse {
            citations: vec![citation],
            uses: vec![(secret("web_search"), 2)],
        })),
    };
    let tool = ToolCallDetails {
        call: secret("c1"),
        tool: secret("read"),
        start: Duration::from_millis(6),
        end: Duration::from_millis(7),
        is_error: true,
    };
    let message = ConversationTranscript {
        agent_index: 1,
        model_role: 1,
        caller: None,
        messages: vec![question, asking, Message::tool(&call, ToolOutput::error(secret("broken")))],
        turns: vec![turn],
        tools: vec![tool],
    };
    RowTranscript { conversations: vec![message] }
}

fn record(transcript: Option<&RowTranscript>, settings: &RedactedTraceFacts) -> RowRecord {
    let outcome = Err(RowError::new(RowErrorKind::TurnLimit, format!("it says {KEY}")));
    RowRecord::from_report(&RowReport {
        id: &RowId::Text(format!("row {KEY}").into()),
        number: 7,
        outcome: &outcome,
        input: EnvelopeInput::Absent,
        start: Duration::ZERO,
        end: Duration::from_millis(9),
        calls: &[],
        tools: &[],
        below_min_rating: &[],
        reused: None,
        reusable: None,
        trace: Some(RowTraceData { transcript, settings }),
    })
}

#[test]
fn a_trace_is_read_back_from_the_ledger_line_without_secrets_and_without_bytes_of_files() {
    let (settings, transcript) = (settings(), transcript());
    let record = record(Some(&transcript), &settings);
    assert_eq!(RowRecord::parse(record.line.clone()).unwrap(), record);
    let bytes = record.trace().unwrap();
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(!text.contains(KEY) && !text.contains("the bytes stay out"), "{text}");

    let trace = RowTrace::parse(bytes).unwrap();
    assert_eq!((trace.id, trace.row_number, trace.ok), (TracedRowId::Text("row ***#7".into()), 7, false));
    assert_eq!((trace.start, trace.end), (1_000_000_000_000, 1_000_009_000_000));
    assert_eq!(trace.error.unwrap().message, "it says ***");
    let [reported] = trace.conversations.as_slice() else { panic!("one conversation") };
    assert_eq!((&*reported.agent, &*reported.model), ("helper ***", "openai.m"));
    assert_eq!(settings.instruction_by_digest(reported.system.as_deref().unwrap()), Some("Use ***."));
    assert_eq!(reported.messages[0].files[0].name, "a.txt ***");
    assert_eq!(reported.messages[1].calls[0].arguments, "{\"path\":\"a\"} ***");
    assert_eq!(
        (reported.messages[2].answers.as_deref(), reported.messages[2].is_error),
        (Some("c1 ***"), true)
    );
    assert_eq!(reported.turns[0].hosted_tools.as_ref().unwrap().uses, [("web_search ***".to_owned(), 2)]);
    assert_eq!((reported.tools[0].start, reported.tools[0].is_error), (1_000_006_000_000, true));
}

#[test]
fn a_row_that_ended_before_its_first_call_has_a_trace_without_conversations() {
    let settings = settings();
    let record = record(None, &settings);
    let trace = RowTrace::parse(record.trace().unwrap()).unwrap();
    assert!(trace.conversations.is_empty());
    assert_eq!(trace.error.unwrap().kind, RowErrorKind::TurnLimit.name());
}

#[test]
fn an_envelope_tells_as_much_as_it_can() {
    let settings = settings();
    let envelope = format!(
        r#"{{"id":"a {KEY}","row_number":3,"ok":false,"result":null,"error":{{"type":"Timeout","message":"{KEY}"}}}}"#
    );
    let trace = RowTrace::from_envelope(envelope.as_bytes(), settings.redactor()).unwrap();
    assert_eq!(trace.id, TracedRowId::Text("a ***#3".into()));
    assert_eq!(trace.error.unwrap(), TracedError { kind: "Timeout".into(), message: "***".into() });
    let plain =
        RowTrace::from_envelope(br#"{"id":4,"row_number":4,"ok":true,"error":null}"#, settings.redactor());
    assert_eq!(plain.unwrap().id, TracedRowId::Number(4));
}
