//! The shapes of OpenAI's batch API, which Azure and Groq share.

use std::time::Duration;

use serde_json::{Value, json};

use super::job::{JobOrder, JobView};
use super::store::BatchFile;
use super::timeline::JobPhase;
use super::vendor::BatchVendor;
use crate::protocol::RequestRefusal;

/// The maximum number of pairs in metadata, and the lengths of their names and values.
const PAIRS: usize = 16;
const NAME: usize = 64;
const VALUE: usize = 512;

/// Parses the body that creates a job.
pub(super) fn order(vendor: BatchVendor, body: &Value) -> Result<JobOrder, RequestRefusal> {
    let endpoint = required(body, "endpoint")?;
    let input_file = required(body, "input_file_id")?;
    let window = required(body, "completion_window")?;
    let window_length = window_length(vendor, &window)?;
    let metadata = body.get("metadata").cloned().unwrap_or_default();
    check_metadata(&metadata)?;
    Ok(JobOrder {
        endpoint,
        input_file: Some(input_file),
        metadata,
        window,
        window_length,
        ..JobOrder::default()
    })
}

/// A field of a body that must be a text.
pub(super) fn required(body: &Value, name: &str) -> Result<String, RequestRefusal> {
    let text = body.get(name).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| RequestRefusal::invalid(format!("Missing required parameter: '{name}'.")))
}

fn window_length(vendor: BatchVendor, window: &str) -> Result<Option<Duration>, RequestRefusal> {
    let hours = match window.split_at_checked(window.len().saturating_sub(1)) {
        Some((number, "h")) => number.parse::<u64>().ok(),
        Some((number, "d")) => number.parse::<u64>().ok().and_then(|days| days.checked_mul(24)),
        _ => None,
    };
    let most = if vendor == BatchVendor::Groq { 7 * 24 } else { 24 };
    match hours {
        Some(hours) if (24..=most).contains(&hours) => Ok(Some(Duration::from_secs(hours * 3_600))),
        _ => Err(RequestRefusal::invalid(format!(
            "Invalid value: '{window}'. Value must be '24h'. (completion_window)"
        ))),
    }
}

fn check_metadata(metadata: &Value) -> Result<(), RequestRefusal> {
    let pairs = match metadata {
        Value::Null => return Ok(()),
        Value::Object(pairs) if pairs.len() <= PAIRS => pairs,
        _ => {
            return Err(RequestRefusal::invalid(
                "Invalid 'metadata': expected an object of at most 16 pairs.",
            ));
        }
    };
    let fits = |(name, value): (&String, &Value)| {
        name.chars().count() <= NAME && value.as_str().is_some_and(|text| text.chars().count() <= VALUE)
    };
    match pairs.iter().all(fits) {
        true => Ok(()),
        false => Err(RequestRefusal::invalid(
            "Invalid 'metadata': names have at most 64 characters, values are texts of at most 512.",
        )),
    }
}

/// A job.
pub(super) fn job(view: &JobView<'_>) -> Value {
    let (job, line) = (view.job, &view.job.timeline);
    let phase = view.phase();
    let is_running = !line.fails && line.cancelled.is_none_or(|cancelled| cancelled >= line.begins());
    let started = view.passed(line.begins()).filter(|_| is_running);
    let finalizes = line.cancelled.is_none() && line.end().0 == JobPhase::Completed;
    let ended = |last| view.ended_as(last).map(|time| view.clock.unix(time));
    let outcome = job.outcome.as_deref();
    json!({
        "id": job.id,
        "object": "batch",
        "endpoint": job.order.endpoint,
        "model": job.order.model,
        "errors": errors(view),
        "input_file_id": job.order.input_file,
        "completion_window": job.order.window,
        "status": phase.name(),
        "output_file_id": outcome.and_then(|outcome| outcome.output_file.as_deref()),
        "error_file_id": outcome.and_then(|outcome| outcome.error_file.as_deref()),
        "created_at": view.clock.unix(line.created),
        "in_progress_at": started,
        "expires_at": line.deadline().map(|deadline| view.clock.unix(deadline)),
        "finalizing_at": view.passed(line.finalizes()).filter(|_| is_running && finalizes),
        "completed_at": ended(JobPhase::Completed),
        "failed_at": ended(JobPhase::Failed),
        "expired_at": ended(JobPhase::Expired),
        "cancelling_at": line.cancelled.map(|cancelled| view.clock.unix(cancelled)),
        "cancelled_at": ended(JobPhase::Cancelled),
        "request_counts": counts(view),
        "usage": usage(view),
        "metadata": job.order.metadata,
    })
}

fn errors(view: &JobView<'_>) -> Value {
    if view.phase() != JobPhase::Failed {
        return Value::Null;
    }
    let errors = view.job.errors.iter().map(|error| {
        json!({"code": error.code, "line": error.line, "message": error.message, "param": error.parameter})
    });
    json!({"object": "list", "data": errors.collect::<Value>()})
}

fn counts(view: &JobView<'_>) -> Value {
    let counts = view.counts();
    match view.phase() {
        JobPhase::Validating | JobPhase::Failed if view.job.vendor == BatchVendor::Azure => Value::Null,
        phase if view.job.vendor == BatchVendor::Azure && !phase.is_final() => {
            json!({"total": counts.total, "completed": null, "failed": null})
        }
        JobPhase::Validating | JobPhase::Failed => json!({"total": 0, "completed": 0, "failed": 0}),
        _ => {
            json!({"total": counts.total, "completed": counts.succeeded, "failed": counts.failed + counts.unfinished})
        }
    }
}

fn usage(view: &JobView<'_>) -> Value {
    let is_reported = view.job.vendor == BatchVendor::OpenAi;
    let Some(outcome) = view.job.outcome.as_deref().filter(|_| is_reported) else { return Value::Null };
    let tokens = &outcome.usage;
    json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    })
}

/// A file.
pub(super) fn file(file: &BatchFile, created: i64) -> Value {
    let purpose = match (file.is_result, file.vendor) {
        (true, BatchVendor::Together) => "batch-generated",
        (true, _) => "batch_output",
        (false, vendor) => vendor.purpose(),
    };
    let mut value = json!({
        "id": file.id,
        "object": "file",
        "bytes": file.bytes.length(),
        "created_at": created,
        "filename": file.name,
        "purpose": purpose,
    });
    match file.vendor {
        BatchVendor::Mistral => {
            value["purpose"] = json!("batch");
            value["sample_type"] = json!(match (file.is_result, file.name.contains("_error")) {
                (true, true) => "batch_error",
                (true, false) => "batch_result",
                _ => "batch_request",
            });
            value["source"] = json!(if file.is_result { "mistral" } else { "upload" });
            value["mimetype"] = json!(file.media_type);
        }
        BatchVendor::Together => {
            value["FileType"] = json!("jsonl");
            value["Processed"] = json!(true);
        }
        _ => {
            value["status"] = json!("processed");
            value["expires_at"] = json!(created + 30 * 86_400);
        }
    }
    value
}
