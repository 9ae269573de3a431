//! Jobs, as the Gemini API describes them: long-running operations.

use rowmill_core::ports::{JobCounts, JobError, JobReport, JobState};
use serde_json::Value;

use crate::batch::job_fields::{count, seconds, text};
use crate::call_error::cut_message;
use crate::connection::ProviderConnection;

/// Reads a job; `None` if it has no name.
pub(super) fn read_job(job: &Value, connection: &ProviderConnection) -> Option<JobReport> {
    let about = job.get("metadata").unwrap_or(&Value::Null);
    let word = text(about, "state").unwrap_or_default();
    let input = ["inputConfig", "input_config"].iter().find_map(|field| about.get(field));
    let input = input.and_then(|input| text(input, "fileName").or_else(|| text(input, "file_name")));
    let results = [about.get("output"), job.get("response"), job.pointer("/response/output")];
    let results = results.into_iter().flatten().find_map(|output| text(output, "responsesFile"));
    Some(JobReport {
        id: text(job, "name")?.to_owned(),
        key: text(about, "displayName").map(str::to_owned),
        state: state(word, job),
        provider_state: word.to_owned(),
        counts: about.get("batchStats").and_then(counts),
        created_at: seconds(about, "createTime"),
        expires_at: None,
        input_file: input.map(str::to_owned),
        result_files: results.map(str::to_owned).into_iter().collect(),
        errors: job.get("error").map(|error| job_error(error, connection)).into_iter().collect(),
    })
}

/// The words have one of two prefixes. An operation that is done has ended, whatever its state is called.
fn state(word: &str, job: &Value) -> JobState {
    let word = word.strip_prefix("BATCH_STATE_").or_else(|| word.strip_prefix("JOB_STATE_")).unwrap_or(word);
    match word {
        "PENDING" | "QUEUED" => JobState::Validating,
        "CANCELLING" => JobState::Cancelling,
        "SUCCEEDED" | "PARTIALLY_SUCCEEDED" => JobState::Completed,
        "FAILED" => JobState::Failed,
        "CANCELLED" => JobState::Cancelled,
        "EXPIRED" => JobState::Expired,
        _ if job.get("done").and_then(Value::as_bool) != Some(true) => JobState::InProgress,
        _ if job.get("error").is_some() => JobState::Failed,
        _ => JobState::Completed,
    }
}

/// Numbers that are zero are left out.
fn counts(stats: &Value) -> Option<JobCounts> {
    let total = count(stats, "requestCount")?;
    let completed = count(stats, "successfulRequestCount").unwrap_or_default();
    Some(JobCounts { total, completed, failed: count(stats, "failedRequestCount").unwrap_or_default() })
}

fn job_error(error: &Value, connection: &ProviderConnection) -> JobError {
    let redacted = |text: &str| cut_message(&connection.redact(text));
    let number = error.get("code").and_then(Value::as_i64).map(|code| code.to_string());
    JobError {
        code: text(error, "status").map(redacted).or(number),
        message: redacted(text(error, "message").unwrap_or("the provider gives no reason")),
        line: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_support::setup;

    fn read(job: &Value) -> JobReport {
        read_job(job, &setup("google.m", None, None).connection).unwrap()
    }

    #[test]
    fn states_are_read_with_either_prefix() {
        for (word, expected) in [
            ("PENDING", JobState::Validating),
            ("QUEUED", JobState::Validating),
            ("RUNNING", JobState::InProgress),
            ("UNSPECIFIED", JobState::InProgress),
            ("PAUSED", JobState::InProgress),
            ("CANCELLING", JobState::Cancelling),
            ("SUCCEEDED", JobState::Completed),
            ("PARTIALLY_SUCCEEDED", JobState::Completed),
            ("FAILED", JobState::Failed),
            ("CANCELLED", JobState::Cancelled),
            ("EXPIRED", JobState::Expired),
        ] {
            for prefix in ["BATCH_STATE_", "JOB_STATE_"] {
                let job = json!({"name": "batches/b", "metadata": {"state": format!("{prefix}{word}")}});
                assert_eq!(read(&job).state, expected, "{prefix}{word}");
            }
        }
        let done = json!({"name": "batches/b", "done": true});
        assert_eq!(read(&done).state, JobState::Completed);
        let failed = json!({"name": "batches/b", "done": true, "error": {"code": 8, "message": "sk-secret"}});
        let report = read(&failed);
        assert_eq!((report.state, report.errors[0].code.as_deref()), (JobState::Failed, Some("8")));
        assert!(!report.errors[0].message.contains("sk-secret"));
    }

    #[test]
    fn an_operation_is_read_with_its_counts_and_its_file_in_either_place() {
        let about = json!({
            "displayName": "k", "state": "BATCH_STATE_SUCCEEDED", "createTime": "1970-01-01T00:01:00Z",
            "batchStats": {"requestCount": "7", "successfulRequestCount": "7"},
            "inputConfig": {"fileName": "files/in"}, "output": {"responsesFile": "files/out"},
        });
        let report = read(&json!({"name": "batches/b", "metadata": about, "done": true}));
        assert_eq!((report.key.as_deref(), report.created_at), (Some("k"), Some(60)));
        assert_eq!(report.counts, Some(JobCounts { total: 7, completed: 7, failed: 0 }));
        assert_eq!(report.input_file.as_deref(), Some("files/in"));
        assert_eq!(report.result_files, ["files/out"]);
        let response = json!({"name": "batches/b", "response": {"responsesFile": "files/other"}});
        assert_eq!(read(&response).result_files, ["files/other"]);
    }
}
