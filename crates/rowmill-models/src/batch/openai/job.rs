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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_support::setup;

    fn read(job: &Value) -> JobReport {
        read_job(job, &setup("openai.m", None, None).connection).unwrap()
    }

    #[test]
    fn the_states_of_all_providers_are_known_and_others_are_in_progress() {
        for (words, expected) in [
            (&["validating", "VALIDATING", "QUEUED"][..], JobState::Validating),
            (&["in_progress", "IN_PROGRESS", "RUNNING", "pondering", ""], JobState::InProgress),
            (&["finalizing"], JobState::Finalizing),
            (&["cancelling", "CANCELLATION_REQUESTED"], JobState::Cancelling),
            (&["completed", "COMPLETED", "SUCCESS"], JobState::Completed),
            (&["failed", "FAILED"], JobState::Failed),
            (&["expired", "EXPIRED", "TIMEOUT_EXCEEDED"], JobState::Expired),
            (&["cancelled", "CANCELLED"], JobState::Cancelled),
        ] {
            for word in words {
                let report = read(&json!({"id": "b", "status": word}));
                assert_eq!((report.state, report.provider_state.as_str()), (expected, *word));
            }
        }
        assert_eq!(read(&json!({"id": "b", "status": null})).state, JobState::InProgress);
    }

    #[test]
    fn a_job_of_openai_is_read_with_both_files() {
        let report = read(&json!({
            "id": "batch_1", "status": "expired", "input_file_id": "file-in", "output_file_id": "file-out",
            "error_file_id": "file-err", "created_at": 1, "expires_at": 2, "metadata": {"rowmill_job": "k"},
            "request_counts": {"total": 3, "completed": 2, "failed": 1}, "errors": null,
        }));
        assert_eq!(report.key.as_deref(), Some("k"));
        assert_eq!(report.counts, Some(JobCounts { total: 3, completed: 2, failed: 1 }));
        assert_eq!((report.created_at, report.expires_at), (Some(1), Some(2)));
        assert_eq!(report.input_file.as_deref(), Some("file-in"));
        assert_eq!(report.result_files, ["file-out", "file-err"]);
        assert_eq!(report.errors, []);
        let clean = read(&json!({
            "id": "b", "status": "completed", "output_file_id": "", "error_file_id": null, "metadata": null,
            "request_counts": {"total": null, "completed": null, "failed": null},
        }));
        assert_eq!((clean.counts, clean.result_files.len(), clean.key), (None, 0, None));
    }

    #[test]
    fn jobs_of_others_are_read_from_their_own_fields() {
        let report = read(&json!({
            "id": "u", "object": "batch", "status": "SUCCESS", "input_files": ["in"], "output_file": "out",
            "error_file": null, "total_requests": 5, "completed_requests": 5, "succeeded_requests": 4,
            "failed_requests": 1, "created_at": 7, "errors": [{"message": "bad line", "count": 2}],
        }));
        assert_eq!(report.counts, Some(JobCounts { total: 5, completed: 4, failed: 1 }));
        assert_eq!(
            (report.input_file.as_deref(), report.result_files.as_slice()),
            (Some("in"), &["out".to_owned()][..])
        );
        assert_eq!(report.errors[0].message, "bad line");
        let report = read(&json!({
            "id": "t", "status": "FAILED", "error": "no such model, sk-secret", "progress": 0,
            "created_at": "2026-11-19T06:00:00.123Z", "job_deadline": "2026-11-20T06:00:00Z",
        }));
        assert_eq!(report.expires_at.unwrap() - report.created_at.unwrap(), 86_400);
        assert!(report.errors[0].message.starts_with("no such model, "));
        assert!(!report.errors[0].message.contains("sk-secret"));
    }

    #[test]
    fn a_full_queue_is_distinguished_from_a_bad_file() {
        let error = |code: &str| json!({"code": code, "message": "m", "line": 7, "param": null});
        let report = read(&json!({
            "id": "b", "status": "failed",
            "errors": {"object": "list", "data": [error("token_limit_exceeded"), error("invalid_json_line"), {}]},
        }));
        let full: Vec<bool> = report.errors.iter().map(JobError::is_full_queue).collect();
        assert_eq!(full, [true, false]);
        assert_eq!(report.errors[1].line, Some(7));
    }
}
