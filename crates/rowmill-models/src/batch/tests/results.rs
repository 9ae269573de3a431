use proptest::prelude::*;
use rowmill_core::ports::JobResult;
use rowmill_types::{CallError, CallFailure, CallRetryClass, FinishReason};

use super::{MODELS, api, read};

const CHAT: &str = r#"{"id":"c","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"four"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
const RESPONSES: &str = r#"{"id":"r","status":"completed","model":"m-1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"four"}]}],"usage":{"input_tokens":3,"output_tokens":2}}"#;
const MESSAGE: &str = r#"{"id":"msg","type":"message","role":"assistant","model":"m-1","content":[{"type":"text","text":"four"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}"#;
const GEMINI: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"four"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2},"modelVersion":"m-1"}"#;

/// A successful line of each provider.
fn success(model: &str) -> String {
    match model {
        "anthropic.m" => {
            format!(r#"{{"custom_id":"r-1","result":{{"type":"succeeded","message":{MESSAGE}}}}}"#)
        }
        "google.m" => format!(r#"{{"key":"r-1","response":{GEMINI}}}"#),
        model => {
            let body = if model == "responses.m" { RESPONSES } else { CHAT };
            format!(
                r#"{{"id":"batch_req_1","custom_id":"r-1","response":{{"status_code":200,"request_id":"q","body":{body}}},"error":null}}"#
            )
        }
    }
}

fn failure(model: &str, line: &str) -> CallError {
    let result = read(model, line);
    assert_eq!(result.custom_id, "r-1", "{model}");
    result.outcome.expect_err(line)
}

#[test]
fn an_answer_is_read_as_that_of_a_live_call() {
    for model in MODELS {
        let result = read(model, &success(model));
        assert_eq!(result.custom_id, "r-1", "{model}");
        let answer = result.outcome.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("four", FinishReason::Complete), "{model}");
        assert_eq!(answer.model.as_deref(), Some("m-1"), "{model}");
        let usage = answer.usage.unwrap();
        assert_eq!((usage.input, usage.output), (3, 2), "{model}");
        assert!(answer.raw_usage.is_some(), "{model}");
    }
    let inline = format!(r#"{{"response":{GEMINI},"metadata":{{"key":"r-9"}}}}"#);
    assert_eq!(read("google.m", &inline).custom_id, "r-9");
    let bare = format!(r#"{{"custom_id":"r-1","response":{{"body":{CHAT}}}}}"#);
    assert_eq!(read("together.m", &bare).outcome.unwrap().text, "four");
}

#[test]
fn a_letter_that_text_cannot_contain_loses_no_answer() {
    let broken = success("openai.m").replace("four", r"fo\ud83dur");
    assert_eq!(read("openai.m", &broken).outcome.unwrap().text, "fo\u{fffd}ur");
}

/// A row of OpenAI that has failed with this status.
fn failed_row(status: u16, error: &str) -> String {
    format!(
        r#"{{"custom_id":"r-1","response":{{"status_code":{status},"body":{{"error":{error}}}}},"error":null}}"#
    )
}

#[test]
fn failed_rows_of_openai_are_the_errors_of_live_calls() {
    let long = r#"{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}"#;
    let no_model = r#"{"message":"The model `m` does not exist"}"#;
    for (status, body, failed, code) in [
        (400, long, CallFailure::Refused, Some("context_length_exceeded")),
        (400, r#"{"message":"no","code":"content_filter"}"#, CallFailure::Filtered, Some("content_filter")),
        (429, r#"{"message":"slow down"}"#, CallFailure::RateLimited, None),
        (500, r#"{"message":"oops"}"#, CallFailure::Server, None),
        (404, no_model, CallFailure::UnknownModel, None),
    ] {
        let error = failure("openai.m", &failed_row(status, body));
        assert_eq!((error.failure, error.code.as_deref()), (failed, code), "{body}");
        assert_eq!(error.status, Some(status), "{body}");
    }
}

#[test]
fn rows_of_openai_without_an_answer_say_why() {
    for (rest, failed, status, code) in [
        (r#""response":null,"error":null"#, CallFailure::Server, None, None),
        (
            r#""error":{"code":"batch_cancelled","message":"stop"}"#,
            CallFailure::Server,
            None,
            Some("batch_cancelled"),
        ),
        (
            r#""response":null,"error":{"code":"request_timeout","message":"slow"}"#,
            CallFailure::Server,
            None,
            Some("request_timeout"),
        ),
        (
            r#""response":null,"error":{"code":"invalid_request","message":"bad"}"#,
            CallFailure::Refused,
            None,
            Some("invalid_request"),
        ),
        (r#""error":"nobody knows""#, CallFailure::Malformed, None, None),
        (r#""response":{"status_code":200,"body":{"choices":[]}}"#, CallFailure::Malformed, Some(200), None),
        (r#""response":{"status_code":200}"#, CallFailure::Malformed, None, None),
        (r#""response":[7]"#, CallFailure::Malformed, None, None),
    ] {
        let error = failure("openai.m", &format!(r#"{{"custom_id":"r-1",{rest}}}"#));
        assert_eq!((error.failure, error.status, error.code.as_deref()), (failed, status, code), "{rest}");
    }
    let expired =
        r#"{"custom_id":"r-1","response":null,"error":{"code":"batch_expired","message":"too late"}}"#;
    let error = failure("openai.m", expired);
    assert_eq!(&*error.message, "the request was not answered before the job ended: too late");
    assert_eq!(error.code.as_deref(), Some("batch_expired"));
    assert!(matches!(error.retry_class(), CallRetryClass::Transient { after: None }));
}

#[test]
fn a_request_without_any_result_can_be_sent_again() {
    let missing = JobResult::missing("r-1");
    assert!(matches!(missing.outcome.unwrap_err().retry_class(), CallRetryClass::Transient { after: None }));
}

#[test]
fn all_results_of_anthropic_are_distinguished() {
    let errored = |kind: &str| {
        format!(
            r#"{{"custom_id":"r-1","result":{{"type":"errored","error":{{"type":"error","error":{{"type":"{kind}","message":"internal timeout"}},"request_id":"q"}}}}}}"#
        )
    };
    for (line, failed, status) in [
        (errored("invalid_request_error"), CallFailure::Refused, Some(400)),
        (errored("request_too_large"), CallFailure::Refused, Some(413)),
        (errored("billing_error"), CallFailure::QuotaExhausted, Some(402)),
        (errored("overloaded_error"), CallFailure::Server, Some(529)),
        (errored("api_error"), CallFailure::Server, Some(500)),
        (errored("rate_limit_error"), CallFailure::RateLimited, Some(429)),
        (errored("new_error"), CallFailure::Server, None),
        (r#"{"custom_id":"r-1","result":{"type":"canceled"}}"#.to_owned(), CallFailure::Server, None),
        (r#"{"custom_id":"r-1","result":{"type":"expired"}}"#.to_owned(), CallFailure::Server, None),
        (r#"{"custom_id":"r-1","result":{"type":"dreamt"}}"#.to_owned(), CallFailure::Malformed, None),
        (r#"{"custom_id":"r-1","result":{"type":"succeeded"}}"#.to_owned(), CallFailure::Malformed, None),
        (r#"{"custom_id":"r-1"}"#.to_owned(), CallFailure::Malformed, None),
    ] {
        let error = failure("anthropic.m", &line);
        assert_eq!((error.failure, error.status), (failed, status), "{line}");
    }
}

#[test]
fn all_results_of_gemini_are_distinguished() {
    let error = |error: &str| format!(r#"{{"key":"r-1","error":{error}}}"#);
    for (line, failed, status) in [
        (error(r#"{"code":3,"message":"bad"}"#), CallFailure::Refused, Some(400)),
        (
            error(r#"{"code":8,"message":"full","status":"RESOURCE_EXHAUSTED"}"#),
            CallFailure::RateLimited,
            Some(429),
        ),
        (error(r#"{"code":13,"message":"oops"}"#), CallFailure::Server, Some(500)),
        (error(r#"{"code":503,"message":"oops"}"#), CallFailure::Server, Some(503)),
        (error(r#"{"code":1,"message":"stop"}"#), CallFailure::Server, None),
        (error(r#"{"message":"oops","status":"INTERNAL"}"#), CallFailure::Server, None),
        (r#"{"key":"r-1","status":{"code":14,"message":"busy"}}"#.to_owned(), CallFailure::Server, Some(503)),
        (r#"{"key":"r-1"}"#.to_owned(), CallFailure::Server, None),
        (r#"{"key":"r-1","response":{}}"#.to_owned(), CallFailure::Malformed, Some(200)),
    ] {
        let error = failure("google.m", &line);
        assert_eq!((error.failure, error.status), (failed, status), "{line}");
    }
    let blocked = r#"{"key":"r-1","response":{"promptFeedback":{"blockReason":"SAFETY"}}}"#;
    assert_eq!(read("google.m", blocked).outcome.unwrap().finish, FinishReason::Filtered);
}

#[test]
fn errors_of_rows_contain_no_key() {
    for (model, line) in [
        (
            "openai.m",
            r#"{"custom_id":"r-1","response":{"status_code":400,"body":{"error":{"message":"sk-secret is bad"}}}}"#,
        ),
        ("openai.m", r#"{"custom_id":"r-1","error":{"code":"batch_expired","message":"sk-secret"}}"#),
        (
            "anthropic.m",
            r#"{"custom_id":"r-1","result":{"type":"errored","error":{"error":{"type":"api_error","message":"sk-secret"}}}}"#,
        ),
        ("google.m", r#"{"key":"r-1","error":{"code":13,"message":"sk-secret"}}"#),
        ("google.m", r#"{"key":"r-1","error":{"code":1,"message":"sk-secret"}}"#),
    ] {
        let error = failure(model, line);
        assert!(!error.message.contains("sk-secret"), "{model}: {error}");
    }
}

#[test]
fn a_line_without_an_id_is_no_result() {
    for model in MODELS {
        for line in [
            "",
            "{",
            "7",
            "[]",
            "{}",
            r#"{"custom_id":"","key":""}"#,
            r#"{"custom_id":7,"key":7}"#,
            "\u{feff}",
        ] {
            assert!(api(model).read_result(line.as_bytes()).is_err(), "{model}: {line}");
        }
    }
}

#[test]
fn no_cut_line_panics_and_none_is_an_answer() {
    for model in MODELS {
        let (api, line) = (api(model), success(model));
        for end in 0..line.len() {
            assert!(api.read_result(&line.as_bytes()[..end]).is_err(), "{model}: {end}");
        }
    }
}

proptest! {
    #[test]
    fn no_changed_line_panics_and_its_id_alone_is_the_one_that_the_whole_line_has(
        model in prop::sample::select(MODELS.to_vec()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        nested in prop::sample::select(vec![0, 300, 5_000]),
    ) {
        let api = api(model);
        let mut line = success(model).into_bytes();
        for (at, byte) in changes {
            let at = at.index(line.len());
            line[at] = byte;
        }
        let check = |line: &[u8]| {
            let whole = api.read_result(line).ok().map(|result| result.custom_id);
            assert_eq!(api.read_result_id(line), whole);
        };
        check(success(model).as_bytes());
        check(&line);
        let deep = format!(r#"{{"custom_id":"r-1","key":"r-1","response":{}"#, "[".repeat(nested));
        check(deep.as_bytes());
        let closed = format!("{deep}{}}}", "]".repeat(nested));
        check(closed.as_bytes());
    }
}
