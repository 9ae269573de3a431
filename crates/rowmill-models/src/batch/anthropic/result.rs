//! Lines of Anthropic's results.

use std::borrow::Cow;

use rowmill_core::ports::JobResult;
use rowmill_types::{CallError, Completion};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::batch::row_translation::RowTranslation;
use crate::error_body::ErrorBody;

/// The statuses that live calls have for types of errors.
const STATUSES: &[(&str, u16)] = &[
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

#[derive(Debug, Deserialize)]
struct ResultLine<'a> {
    #[serde(borrow, default)]
    custom_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct RowResult<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl ResultLine<'_> {
    fn id(&self) -> Option<&str> {
        self.custom_id.as_deref().filter(|id| !id.is_empty())
    }
}

/// Reads the id of a line.
pub(super) fn read_result_id(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let read: ResultLine<'_> = serde_json::from_str(&text).ok()?;
    read.id().map(str::to_owned)
}

/// Reads a line.
pub(super) fn read_result(rows: &RowTranslation, line: &[u8]) -> Result<JobResult, String> {
    let text = String::from_utf8_lossy(line);
    let read: ResultLine<'_> =
        serde_json::from_str(&text).map_err(|error| format!("the line is not a result: {error}"))?;
    let custom_id = read.id().ok_or("the result has no custom id")?.to_owned();
    Ok(JobResult { custom_id, outcome: outcome(rows, read.result.map_or("null", RawValue::get)) })
}

fn outcome(rows: &RowTranslation, result: &str) -> Result<Completion, CallError> {
    let unreadable = |what: &str| rows.unreadable(what, result.as_bytes());
    let read: RowResult<'_> = serde_json::from_str(result)
        .map_err(|error| unreadable(&format!("the result does not follow the protocol: {error}")))?;
    match (&*read.kind, read.message, read.error) {
        ("succeeded", Some(message), _) => rows.answer(200, message.get().as_bytes()),
        ("errored", _, Some(error)) => Err(row_error(rows, error.get())),
        ("canceled", ..) => {
            Err(rows.not_run(Some("canceled"), "the job was cancelled before the request was run"))
        }
        ("expired", ..) => Err(rows.not_run(Some("expired"), "the job expired before the request was run")),
        _ => Err(unreadable("the result is of an unknown type")),
    }
}

/// The error that a live call would have given.
fn row_error(rows: &RowTranslation, error: &str) -> CallError {
    let body: Value = serde_json::from_str(error).unwrap_or_default();
    let kind = body.pointer("/error/type").or_else(|| body.get("type")).and_then(Value::as_str);
    match STATUSES.iter().find(|(name, _)| Some(*name) == kind) {
        Some((_, status)) => rows.failure(*status, error.as_bytes()),
        None => rows.reported_error(ErrorBody::parse(error.as_bytes())),
    }
}
