//! Lines of Gemini's result files.

use std::borrow::Cow;

use rowmill_core::ports::JobResult;
use rowmill_types::{CallError, Completion};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::batch::row_translation::RowTranslation;
use crate::error_body::ErrorBody;

/// The code of a request that was cancelled with its job.
const CANCELLED: u64 = 1;

#[derive(Debug, Deserialize)]
struct ResultLine<'a> {
    #[serde(borrow, default)]
    key: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    metadata: Option<RowMetadata<'a>>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct RowMetadata<'a> {
    #[serde(borrow, default)]
    key: Option<Cow<'a, str>>,
}

impl ResultLine<'_> {
    fn id(&self) -> Option<&str> {
        let inner = self.metadata.as_ref().and_then(|metadata| metadata.key.as_deref());
        self.key.as_deref().or(inner).filter(|key| !key.is_empty())
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
    let custom_id = read.id().ok_or("the result has no key")?.to_owned();
    Ok(JobResult { custom_id, outcome: outcome(rows, &read) })
}

fn outcome(rows: &RowTranslation, line: &ResultLine<'_>) -> Result<Completion, CallError> {
    let written = |raw: Option<&'_ RawValue>| raw.map(|raw| raw.get().to_owned()).filter(|raw| raw != "null");
    if let Some(response) = written(line.response) {
        return rows.answer(200, response.as_bytes());
    }
    Err(match written(line.error).or_else(|| written(line.status)) {
        Some(error) => row_error(rows, &error),
        None => rows.not_run(None, "the job ended without an answer to this request"),
    })
}

/// The error that a live call would have given. Its code is an HTTP status, or a number of Google's own.
fn row_error(rows: &RowTranslation, error: &str) -> CallError {
    let body: Value = serde_json::from_str(error).unwrap_or_default();
    let code = body.get("code").and_then(Value::as_u64);
    let Some(status) = code.and_then(http_status) else {
        return rows.reported_error(ErrorBody::from_error_field(error));
    };
    if code == Some(CANCELLED) || status == 499 {
        let message = body.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return rows.not_run(
            Some("CANCELLED"),
            &format!("the job was cancelled before the request was run: {message}"),
        );
    }
    rows.failure(status, json!({"error": named(body, code)}).to_string().as_bytes())
}

/// An error with the name of its code, which a live call has beside it.
fn named(mut error: Value, code: Option<u64>) -> Value {
    let name = code.and_then(|code| NAMES.iter().find(|(number, _)| *number == code));
    if let (Some(fields), Some((_, name))) = (error.as_object_mut(), name) {
        fields.entry("status").or_insert_with(|| json!(name));
    }
    error
}

/// The names of Google's own codes.
const NAMES: [(u64, &str); 15] = [
    (2, "UNKNOWN"),
    (3, "INVALID_ARGUMENT"),
    (4, "DEADLINE_EXCEEDED"),
    (5, "NOT_FOUND"),
    (6, "ALREADY_EXISTS"),
    (7, "PERMISSION_DENIED"),
    (8, "RESOURCE_EXHAUSTED"),
    (9, "FAILED_PRECONDITION"),
    (10, "ABORTED"),
    (11, "OUT_OF_RANGE"),
    (12, "UNIMPLEMENTED"),
    (13, "INTERNAL"),
    (14, "UNAVAILABLE"),
    (15, "DATA_LOSS"),
    (16, "UNAUTHENTICATED"),
];

/// The HTTP status of a code.
fn http_status(code: u64) -> Option<u16> {
    Some(match code {
        CANCELLED => 499,
        3 | 9 | 11 => 400,
        4 => 504,
        5 => 404,
        6 | 10 => 409,
        7 => 403,
        8 => 429,
        12 => 501,
        2 | 13 | 15 => 500,
        14 => 503,
        16 => 401,
        400..600 => u16::try_from(code).ok()?,
        _ => return None,
    })
}
