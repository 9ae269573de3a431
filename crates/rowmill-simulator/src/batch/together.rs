//! The shapes of Together's batch API.

use serde_json::{Value, json};

use super::job::{JobOrder, JobView};
use super::openai::required;
use super::timeline::JobPhase;
use crate::protocol::RequestRefusal;

/// Parses the body that creates a job.
pub(super) fn order(body: &Value) -> Result<JobOrder, RequestRefusal> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    Ok(JobOrder {
        endpoint: required(body, "endpoint")?,
        input_file: Some(required(body, "input_file_id")?),
        model: text("model_id"),
        window: text("completion_window").unwrap_or_else(|| "24h".to_owned()),
        ..JobOrder::default()
    })
}

/// A job.
pub(super) fn job(view: &JobView<'_>) -> Value {
    let job = view.job;
    let phase = view.phase();
    let counts = view.counts();
    let done = (counts.succeeded + counts.failed + counts.unfinished) as f64;
    let progress = if counts.total > 0 { (done * 100.0 / counts.total as f64).floor() } else { 0.0 };
    let outcome = job.outcome.as_deref();
    let ended = view.ended_as(JobPhase::Completed);
    let deadline = job.timeline.deadline();
    json!({
        "id": job.id,
        "user_id": "simulator",
        "endpoint": job.order.endpoint,
        "input_file_id": job.order.input_file,
        "file_size_bytes": job.input_bytes,
        "model_id": job.order.model,
        "status": state(phase),
        "progress": progress,
        "error": error(view),
        "output_file_id": outcome.and_then(|outcome| outcome.output_file.as_deref()),
        "error_file_id": outcome.and_then(|outcome| outcome.error_file.as_deref()),
        "created_at": view.clock.text(job.timeline.created),
        "completed_at": ended.map(|time| view.clock.text(time)),
        "job_deadline": deadline.map(|deadline| view.clock.text(deadline)),
    })
}

fn state(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Validating => "VALIDATING",
        // There is no state between these and the last one.
        JobPhase::InProgress | JobPhase::Finalizing | JobPhase::Cancelling => "IN_PROGRESS",
        JobPhase::Completed => "COMPLETED",
        JobPhase::Failed => "FAILED",
        JobPhase::Expired => "EXPIRED",
        JobPhase::Cancelled => "CANCELLED",
    }
}

fn error(view: &JobView<'_>) -> Option<String> {
    let error = view.job.errors.first().filter(|_| view.phase() == JobPhase::Failed)?;
    Some(match error.line {
        Some(line) => format!("{} (line {line}, {})", error.message, error.code),
        None => format!("{} ({})", error.message, error.code),
    })
}
