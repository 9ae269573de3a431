use std::time::Duration;

use rowmill_types::{
    AnswerVerdict, Attachment, BatchAnswerOrigin, CallTiming, Citation, Completion, FinishReason,
    HostedToolUse, Money, NativeMessage, RowError, RowErrorKind, TokenUsage, ToolCall, ToolOutput,
};
use serde_json::value::RawValue;

use super::StepEvent;
use crate::agent::{ToolCallDetails, TurnDetails};
use crate::record::CallReport;

fn raw(text: &str) -> Option<Box<RawValue>> {
    Some(RawValue::from_string(text.to_owned()).unwrap())
}

fn usage() -> TokenUsage {
    TokenUsage { input: 12, cached: 3, cache_write: 1, output: 7, reasoning: 2 }
}

fn hosted() -> Option<Box<HostedToolUse>> {
    let citation = Citation { url: "https://a.example/".into(), title: Some("A".into()), text: None };
    Some(Box::new(HostedToolUse { citations: vec![citation], uses: vec![("web_search".into(), 2)] }))
}

fn call() -> CallReport {
    CallReport {
        error: Some(RowErrorKind::RateLimited),
        status: Some(429),
        timing: CallTiming { first_token: None, response: Duration::from_nanos(1_234_567_891) },
        usage: Some(usage()),
        raw_usage: raw("{\"a\":1}"),
        model: Some("m".into()),
        service_tier: Some("flex".into()),
        cost: Some(Money::from_pico(123_456_789_012_345)),
        agent: Some("writer".into()),
        hosted_tools: None,
        output_cap: Some(4_096),
        batch: Some(Box::new(BatchAnswerOrigin {
            job: "batch_1".into(),
            round: 2,
            attempt: 1,
            is_counted: false,
        })),
        beside_jobs: true,
    }
}

fn answered() -> StepEvent {
    let completion = Completion {
        text: "line one\nline \"two\" ä 😀".into(),
        finish: FinishReason::Paused,
        calls: vec![ToolCall { id: "c1".into(), name: "search".into(), arguments: "{broken\n".into() }],
        native: Some(Box::new(NativeMessage { format: "anthropic".into(), content: "[\n1]".into() })),
        hosted_tools: hosted(),
        usage: Some(usage()),
        raw_usage: raw("{\"in\":1.50}"),
        timing: CallTiming { first_token: Some(Duration::from_nanos(1)), response: Duration::from_micros(2) },
        model: Some("m-1".into()),
        service_tier: Some("default".into()),
        rate_limits: None,
        verdict: Some(Box::new(AnswerVerdict::Invalid(vec!["at `/n`: too \"low\"".into()]))),
        batch: call().batch,
    };
    let note = TurnDetails {
        start: Duration::from_nanos(5),
        end: Duration::from_hours(9),
        model: "m-1".into(),
        usage: Some(usage()),
        cost: Some(Money::from_pico(1)),
        finish: FinishReason::Complete,
        hosted: hosted(),
    };
    StepEvent::ModelAnswered {
        node: 3,
        prompt: Some("changed".into()),
        completion,
        note: Some(note),
        calls: vec![call(), CallReport { error: None, status: None, cost: None, usage: None, ..call() }],
    }
}

fn every_step_event() -> Vec<StepEvent> {
    let file = Attachment {
        name: "p.png".into(),
        media_type: "image/png".into(),
        bytes: vec![0, 255, 10, 13].into(),
        digest: "ab".into(),
    };
    let note = ToolCallDetails {
        call: "c1".into(),
        tool: "search".into(),
        start: Duration::from_nanos(1),
        end: Duration::from_nanos(2),
        is_error: true,
    };
    let error = RowError {
        status: Some(500),
        code: Some("overloaded".into()),
        attempts: Some(4),
        raw_text: Some("half".into()),
        ..RowError::new(RowErrorKind::ServerError, "it\nfailed")
    };
    vec![
        answered(),
        StepEvent::ModelAnswered {
            node: 0,
            prompt: None,
            completion: Completion::from_text(""),
            note: None,
            calls: Vec::new(),
        },
        StepEvent::ModelFailed { node: 1, error, calls: vec![call()] },
        StepEvent::ModelFailed {
            node: 1,
            error: RowError::new(RowErrorKind::Internal, ""),
            calls: Vec::new(),
        },
        StepEvent::ToolStarted {
            node: 1,
            index: 2,
            tool: "server__tool".into(),
            call: "c1".into(),
            arguments: "{\"a\":1}".into(),
            turn: 3,
        },
        StepEvent::ToolEnded {
            node: 1,
            index: 2,
            output: ToolOutput { text: "t".into(), attachments: vec![file], is_error: true, is_final: true },
            note: Some(note),
        },
        StepEvent::ToolEnded { node: 1, index: 0, output: ToolOutput::from_text("t"), note: None },
        StepEvent::NodeTimedOut { node: 9, limit: Duration::from_millis(1500) },
    ]
}

fn written(step_event: &StepEvent) -> String {
    let mut out = Vec::new();
    step_event.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn what_is_written_is_one_line_and_reads_as_it_was() {
    for step_event in every_step_event() {
        let line = written(&step_event);
        assert!(!line.contains('\n'), "{line}");
        let read = StepEvent::parse(line.as_bytes()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{step_event:?}"));
        assert_eq!(written(&read), line);
    }
}

#[test]
fn what_a_provider_spread_over_lines_stays_on_one_with_its_numbers_as_they_were() {
    let completion = Completion { raw_usage: raw("{\n  \"in\": 1.50\n}"), ..Completion::from_text("a") };
    let line = written(&StepEvent::ModelAnswered {
        node: 0,
        prompt: None,
        completion,
        note: None,
        calls: Vec::new(),
    });
    assert!(line.contains(r#""raw_usage":{"in":1.50}"#) && !line.contains('\n'), "{line}");
}

#[test]
fn every_kind_of_error_is_known_by_its_name() {
    for kind in RowErrorKind::ALL {
        assert_eq!(kind.name().parse(), Ok(*kind));
    }
    assert!("Nonsense".parse::<RowErrorKind>().is_err());
}

#[test]
fn what_is_torn_or_foreign_is_refused() {
    let line = written(&answered());
    let torn = line.strip_suffix('}').unwrap();
    for text in ["", "{}", "{\"answered\":{}}", "{\"other\":{\"node\":1}}", torn] {
        assert!(StepEvent::parse(text.as_bytes()).is_err(), "{text}");
    }
}
