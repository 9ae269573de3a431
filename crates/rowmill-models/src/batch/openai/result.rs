//! Lines of result files, as APIs in OpenAI's style write them.

use std::borrow::Cow;

use rowmill_core::ports::JobResult;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::api::RowOutcome;
use crate::batch::row_translation::RowTranslation;
use crate::error_body::ErrorBody;

/// What providers write for rows that they did not run, or did not finish.
const NOT_RUN: &[&str] = &["batch_expired", "batch_cancelled", "batch_canceled", "request_timeout"];

#[derive(Debug, Deserialize)]
struct ResultLine<'a> {
    #[serde(borrow, default)]
    custom_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct RowResponse<'a> {
    #[serde(default)]
    status_code: Option<u16>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
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
    Ok(JobResult { custom_id, outcome: outcome(rows, &read) })
}

fn outcome(rows: &RowTranslation, line: &ResultLine<'_>) -> RowOutcome {
    let error = line.error.map(RawValue::get).filter(|error| *error != "null" && *error != "{}");
    let Some(response) = line.response.map(RawValue::get).filter(|response| *response != "null") else {
        return Err(match error {
            Some(error) => row_error(rows, error),
            None => rows.not_run(None, "the job ended without an answer to this request"),
        });
    };
    let unreadable = |what: &str| rows.unreadable(what, response.as_bytes());
    let read: RowResponse<'_> = serde_json::from_str(response)
        .map_err(|error| unreadable(&format!("the result does not follow the protocol: {error}")))?;
    let body = read.body.map_or("", RawValue::get);
    match (read.status_code, error) {
        (Some(status @ 400..), _) => Err(rows.failure(status, body.as_bytes())),
        (_, Some(error)) => Err(row_error(rows, error)),
        (None | Some(200..=299), None) if read.body.is_some() => {
            rows.answer(read.status_code.unwrap_or(200), body.as_bytes())
        }
        _ => Err(unreadable("the result has no answer")),
    }
}

/// The error of a row without an HTTP response.
fn row_error(rows: &RowTranslation, error: &str) -> rowmill_types::CallError {
    let body = ErrorBody::from_error_field(error);
    match body.code.as_deref().filter(|code| NOT_RUN.contains(code)) {
        Some(code) => {
            let message = body.message.as_deref().unwrap_or("the provider gives no reason");
            rows.not_run(Some(code), &format!("the request was not answered before the job ended: {message}"))
        }
        None => rows.reported_error(body),
    }
}
