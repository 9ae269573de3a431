//! The results of rows in the vendors' shapes.

use rowmill_schema_faker::seed_from;
use serde_json::{Value, json};

use super::answer_row::AnsweredRow;
use super::row::BatchRow;
use super::vendor::BatchVendor;

/// What became of a row.
#[derive(Debug)]
pub(crate) enum RowResult {
    Answered(AnsweredRow),
    Expired,
    Cancelled,
}

/// The place for a line of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultPlace {
    Output,
    Errors,
}

/// The line of a row and where it belongs; `None` if its vendor reports nothing of such a row.
pub(crate) fn result_line(
    vendor: BatchVendor,
    row: &BatchRow,
    result: &RowResult,
) -> Option<(ResultPlace, String)> {
    match vendor {
        BatchVendor::Anthropic => Some((ResultPlace::Output, anthropic(row, result))),
        BatchVendor::Gemini => gemini(row, result).map(|line| (ResultPlace::Output, line)),
        BatchVendor::Mistral if !matches!(result, RowResult::Answered(_)) => None,
        _ => Some(openai(vendor, row, result)),
    }
}

fn openai(vendor: BatchVendor, row: &BatchRow, result: &RowResult) -> (ResultPlace, String) {
    let number = seed_from(&[row.id.as_deref().unwrap_or_default(), "result"]);
    let id = json!(row.id);
    let line = |response: &str, error: &Value| {
        format!(
            "{{\"id\":\"batch_req_{number:016x}\",\"custom_id\":{id},\"response\":{response},\"error\":{error}}}"
        )
    };
    let never = |code: &str, message: &str| {
        (ResultPlace::Errors, line("null", &json!({"code": code, "message": message})))
    };
    match result {
        RowResult::Answered(AnsweredRow { status: 0, .. }) => {
            never("request_timeout", "This request could not be completed in time.")
        }
        RowResult::Answered(answered) => {
            let response = format!(
                "{{\"status_code\":{},\"request_id\":\"req_{number:016x}\",\"body\":{}}}",
                answered.status, answered.body
            );
            if answered.is_success() {
                return (ResultPlace::Output, line(&response, &Value::Null));
            }
            let error = match vendor {
                BatchVendor::Mistral => json!({"message": message_of(&answered.body)}),
                _ => Value::Null,
            };
            (ResultPlace::Errors, line(&response, &error))
        }
        RowResult::Expired => {
            never("batch_expired", "This request could not be executed before the completion window expired.")
        }
        RowResult::Cancelled => {
            never("batch_cancelled", "This request was not executed, because the batch was cancelled.")
        }
    }
}

fn message_of(body: &str) -> Value {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    body.pointer("/error/message").cloned().unwrap_or(body)
}

fn anthropic(row: &BatchRow, result: &RowResult) -> String {
    let id = json!(row.id);
    let result = match result {
        RowResult::Answered(answered) if answered.is_success() => {
            format!("{{\"type\":\"succeeded\",\"message\":{}}}", answered.body)
        }
        RowResult::Answered(answered) => {
            let is_error =
                serde_json::from_str::<Value>(&answered.body).is_ok_and(|body| body["error"].is_object());
            let error = if is_error {
                answered.body.clone()
            } else {
                let error = json!({"type": "timeout_error", "message": "The request timed out."});
                json!({"type": "error", "error": error, "request_id": null}).to_string()
            };
            format!("{{\"type\":\"errored\",\"error\":{error}}}")
        }
        RowResult::Expired => json!({"type": "expired"}).to_string(),
        RowResult::Cancelled => json!({"type": "canceled"}).to_string(),
    };
    format!("{{\"custom_id\":{id},\"result\":{result}}}")
}

/// A line of Google's file, or an inlined response.
fn gemini(row: &BatchRow, result: &RowResult) -> Option<String> {
    let RowResult::Answered(answered) = result else { return None };
    let name = if row.metadata.is_null() {
        row.id.as_ref().map(|key| format!("\"key\":{},", json!(key)))
    } else {
        Some(format!("\"metadata\":{},", row.metadata))
    };
    let name = name.unwrap_or_default();
    if answered.is_success() {
        return Some(format!("{{{name}\"response\":{}}}", answered.body));
    }
    // A `google.rpc.Status`, which has codes of its own.
    let error = json!({"code": rpc_code(answered.status), "message": message_of(&answered.body)});
    Some(format!("{{{name}\"error\":{error}}}"))
}

/// The code of a `google.rpc.Status` for an HTTP status.
fn rpc_code(status: u16) -> u8 {
    match status {
        400 => 3,
        401 => 16,
        403 => 7,
        404 => 5,
        429 => 8,
        503 => 14,
        0 | 504 => 4,
        500.. => 13,
        _ => 2,
    }
}
