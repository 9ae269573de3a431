//! The shapes of Mistral's batch API.

use std::time::Duration;

use serde_json::{Value, json};

use super::inline_rows::FieldPath;
use super::job::{JobOrder, JobView};
use super::openai::required;
use super::timeline::JobPhase;
use crate::protocol::RequestRefusal;

/// Where the rows are in a body that contains them.
pub(super) const ROWS: FieldPath = &[&["requests"]];

/// Parses the body that creates a job, without its rows.
pub(super) fn order(body: &Value) -> Result<JobOrder, RequestRefusal> {
    let files = body.get("input_files").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let input_file = match files {
        [] => None,
        [file] => Some(file.as_str().unwrap_or_default().to_owned()),
        _ => return Err(RequestRefusal::invalid("The simulator takes one input file for each job.")),
    };
    let model = body.get("model").and_then(Value::as_str).map(str::to_owned);
    if model.is_none() {
        return Err(RequestRefusal::new(422, "Either model or agent_id must be provided"));
    }
    let hours = body.get("timeout_hours").and_then(Value::as_u64).unwrap_or(24);
    if !(1..=7 * 24).contains(&hours) {
        return Err(RequestRefusal::new(422, "timeout_hours must be between 1 and 168"));
    }
    Ok(JobOrder {
        endpoint: required(body, "endpoint")?,
        model,
        input_file,
        metadata: body.get("metadata").cloned().unwrap_or_default(),
        window: format!("{hours}h"),
        window_length: Some(Duration::from_secs(hours * 3_600)),
        ..JobOrder::default()
    })
}

/// The vendor's error body.
pub(super) fn error(refused: &RequestRefusal) -> Value {
    let kind = match refused.status {
        401 => "invalid_authentication",
        404 => "not_found",
        429 => "rate_limited",
        500.. => "internal_server_error",
        _ => "invalid_request_error",
    };
    json!({"object": "error", "message": refused.message, "type": kind, "param": null, "code": null})
}

/// A job, without the results of its rows.
pub(super) fn job(view: &JobView<'_>) -> Value {
    let job = view.job;
    let line = &job.timeline;
    let phase = view.phase();
    let counts = view.counts();
    let outcome = job.outcome.as_deref();
    let errors = job.errors.iter().filter(|_| phase == JobPhase::Failed);
    let errors = errors.map(|error| match error.line {
        Some(number) => json!({"message": format!("line {number}: {}", error.message), "count": 1}),
        None => json!({"message": error.message, "count": 1}),
    });
    json!({
        "id": job.id,
        "object": "batch",
        "input_files": job.order.input_file.iter().collect::<Vec<_>>(),
        "endpoint": job.order.endpoint,
        "model": job.order.model,
        "agent_id": null,
        "metadata": job.order.metadata,
        "status": state(phase),
        "errors": errors.collect::<Value>(),
        "output_file": outcome.and_then(|outcome| outcome.output_file.as_deref()),
        "error_file": outcome.and_then(|outcome| outcome.error_file.as_deref()),
        "outputs": null,
        "total_requests": counts.total,
        "completed_requests": counts.succeeded + counts.failed,
        "succeeded_requests": counts.succeeded,
        "failed_requests": counts.failed,
        "created_at": view.clock.unix(line.created),
        "started_at": view.passed(line.begins()).filter(|_| !line.fails),
        "completed_at": view.ended().map(|(_, time)| view.clock.unix(time)),
    })
}

pub(super) fn state(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Validating => "QUEUED",
        JobPhase::InProgress | JobPhase::Finalizing => "RUNNING",
        JobPhase::Cancelling => "CANCELLATION_REQUESTED",
        JobPhase::Completed => "SUCCESS",
        JobPhase::Failed => "FAILED",
        JobPhase::Expired => "TIMEOUT_EXCEEDED",
        JobPhase::Cancelled => "CANCELLED",
    }
}
