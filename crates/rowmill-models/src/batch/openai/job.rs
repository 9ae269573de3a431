//! Jobs, as APIs in OpenAI's style describe them.

use rowmill_core::ports::{JobCounts, JobError, JobReport, JobState};
use serde_json::Value;

use super::api::KEY_FIELD;
use crate::batch::job_fields::{count, seconds, text};
use crate::call_error::cut_message;
use crate::connection::ProviderConnection;

/// Reads a job; `None` if it has no id.
pub(super) fn read_job(job: &Value, connection: &ProviderConnection) -> Option<JobReport> {
    let word = text(job, "status").unwrap_or_default();
    let inputs = job.get("input_files").and_then(|files| files.get(0)?.as_str());
    let results = ["output_file_id", "error_file_id", "output_file", "error_file"];
    Some(JobReport {
        id: text(job, "id")?.to_owned(),
        key: job.get("metadata").and_then(|data| text(data, KEY_FIELD)).map(str::to_owned),
        state: state(word),
        provider_state: word.to_owned(),
        counts: counts(job),
        created_at: seconds(job, "created_at"),
        expires_at: seconds(job, "expires_at").or_else(|| seconds(job, "job_deadline")),
        input_file: text(job, "input_file_id").or(inputs).map(str::to_owned),
        result_files: results.iter().filter_map(|field| text(job, field)).map(str::to_owned).collect(),
        errors: errors(job, connection),
    })
}

/// The words of all providers of the family; none of them means different things.
fn state(word: &str) -> JobState {
    match word.to_ascii_lowercase().as_str() {
        "validating" | "queued" => JobState::Validating,
        "finalizing" => JobState::Finalizing,
        "cancelling" | "canceling" | "cancellation_requested" => JobState::Cancelling,
        "completed" | "success" => JobState::Completed,
        "failed" => JobState::Failed,
        "expired" | "timeout_exceeded" => JobState::Expired,
        "cancelled" | "canceled" => JobState::Cancelled,
        _ => JobState::InProgress,
    }
}

fn counts(job: &Value) -> Option<JobCounts> {
    if let Some(counts) = job.get("request_counts") {
        return Some(JobCounts {
            total: count(counts, "total")?,
            completed: count(counts, "completed")?,
            failed: count(counts, "failed")?,
        });
    }
    Some(JobCounts {
        total: count(job, "total_requests")?,
        completed: count(job, "succeeded_requests")?,
        failed: count(job, "failed_requests")?,
    })
}

/// A list of errors, an object around one, or a single text.
fn errors(job: &Value, connection: &ProviderConnection) -> Vec<JobError> {
    let redacted = |text: &str| cut_message(&connection.redact(text));
    let errors = job.get("errors");
    let list = errors.and_then(|errors| errors.get("data").unwrap_or(errors).as_array());
    let single = job.get("error").filter(|error| !error.is_null());
    let read = |error: &Value| {
        let message = error.as_str().or_else(|| text(error, "message"));
        let code = text(error, "code").map(redacted);
        if message.is_none() && code.is_none() {
            return None;
        }
        let message = message.map_or_else(|| "the provider gives no reason".to_owned(), redacted);
        Some(JobError { code, message, line: count(error, "line") })
    };
    list.into_iter().flatten().chain(single).filter_map(read).collect()
}
