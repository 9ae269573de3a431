//! Jobs of Anthropic's Message Batches.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rowmill_core::ports::{BatchApi, BatchRules, JobCounts, JobFile, JobReport, JobResult, JobState};
use rowmill_http::{Method, Url};
use rowmill_types::{CallError, Problem, Request};
use serde_json::Value;

use super::result::{read_result, read_result_id};
use crate::anthropic::client::{anthropic_address, anthropic_headers};
use crate::anthropic::wire::AnthropicWire;
use crate::batch::build::BatchParts;
use crate::batch::download::download_all;
use crate::batch::job_client::{CallBody, JobClient, about_one_job};
use crate::batch::job_fields::{count, seconds, text};
use crate::batch::job_file::array_body;
use crate::batch::row_translation::RowTranslation;
use crate::body::write_text;
use crate::call_error::CallErrorReporter;
use crate::http_model::AnswerDelivery;

/// How many jobs a page of the list has.
const PAGE: &str = "100";

/// Anthropic's batch API.
#[derive(Debug)]
struct MessageJobs {
    client: JobClient,
    rows: RowTranslation,
    rules: BatchRules,
}

/// Builds the API.
pub(in crate::batch) fn build(parts: BatchParts<'_>) -> Result<Arc<dyn BatchApi>, Problem> {
    let BatchParts { setup, rules, http } = parts;
    let connection = &setup.connection;
    let url = anthropic_address(connection, "/messages")?;
    let rows = RowTranslation {
        bodies: Box::new(AnthropicWire::new(setup, AnswerDelivery::Whole)?),
        files: connection.quirks.files,
        reporter: CallErrorReporter::new(connection, &url),
        max_request_bytes: rules.max_request_bytes,
    };
    let headers = anthropic_headers(setup, AnswerDelivery::Whole)?;
    let jobs = anthropic_address(connection, "/messages/batches")?;
    let client = JobClient::new(http, connection, headers, jobs);
    Ok(Arc::new(MessageJobs { client, rows, rules }))
}

impl MessageJobs {
    async fn create_job(&self, job: &JobFile) -> Result<JobReport, CallError> {
        let body = array_body(job, br#"{"requests":["#.to_vec(), b"]}".to_vec()).await?;
        let url = self.client.url([]);
        let headers = self.client.headers_with(&[("content-type", "application/json")])?;
        let answer = self.client.send_sized(&url, headers, body).await?;
        self.read(&self.client.read_json(&url, answer).await?)
    }

    fn read(&self, answer: &Value) -> Result<JobReport, CallError> {
        read_job(answer).ok_or_else(|| self.client.unread("it is not a job", answer))
    }

    async fn list_jobs(&self, since: i64) -> Result<Vec<JobReport>, CallError> {
        let mut found: Vec<JobReport> = Vec::new();
        loop {
            let mut url = self.client.url([]);
            url.query_pairs_mut().append_pair("limit", PAGE);
            if let Some(last) = found.last() {
                url.query_pairs_mut().append_pair("after_id", &last.id);
            }
            let answer = self.client.json(Method::GET, url, CallBody::Empty).await?;
            let jobs = answer.get("data").and_then(Value::as_array).into_iter().flatten();
            let page: Vec<JobReport> = jobs.map(|job| self.read(job)).collect::<Result<_, _>>()?;
            let is_older = |job: &JobReport| job.created_at.is_some_and(|created| created < since);
            let repeats = page.first().is_some_and(|job| found.iter().any(|known| known.id == job.id));
            let has_more = answer.get("has_more").and_then(Value::as_bool) == Some(true);
            let is_end = !has_more || repeats || page.iter().all(is_older);
            if !repeats {
                found.extend(page);
            }
            if is_end {
                found.retain(|job| !is_older(job));
                found.sort_by_key(|job| std::cmp::Reverse(job.created_at));
                return Ok(found);
            }
        }
    }
}

/// Reads a job; `None` if it has no id.
///
/// A job never fails or expires as a whole: its rows do.
fn read_job(job: &Value) -> Option<JobReport> {
    let word = text(job, "processing_status").unwrap_or_default();
    let was_cancelled = text(job, "cancel_initiated_at").is_some();
    Some(JobReport {
        id: text(job, "id")?.to_owned(),
        key: None,
        state: match word {
            "ended" if was_cancelled => JobState::Cancelled,
            "ended" => JobState::Completed,
            "canceling" => JobState::Cancelling,
            _ => JobState::InProgress,
        },
        provider_state: word.to_owned(),
        counts: job.get("request_counts").and_then(counts),
        created_at: seconds(job, "created_at"),
        expires_at: seconds(job, "expires_at"),
        input_file: None,
        result_files: text(job, "results_url").map(str::to_owned).into_iter().collect(),
        errors: Vec::new(),
    })
}

fn counts(counts: &Value) -> Option<JobCounts> {
    let [open, completed] = [count(counts, "processing")?, count(counts, "succeeded")?];
    let failed = ["errored", "canceled", "expired"].iter().filter_map(|field| count(counts, field)).sum();
    Some(JobCounts { total: open + completed + failed, completed, failed })
}

impl BatchApi for MessageJobs {
    fn rules(&self) -> &BatchRules {
        &self.rules
    }

    fn write_request(&self, custom_id: &str, request: &Request, out: &mut Vec<u8>) -> Result<(), CallError> {
        let body = self.rows.body(request)?;
        let mut head = br#"{"custom_id":"#.to_vec();
        write_text(&mut head, custom_id);
        head.extend_from_slice(br#","params":"#);
        self.rows.append_line(&[&head, &body, b"}"], out)
    }

    fn upload<'a>(&'a self, _: &'a JobFile) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        ready(Ok(None)).boxed()
    }

    fn create<'a>(
        &'a self,
        job: &'a JobFile,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<JobReport, CallError>> {
        self.create_job(job).boxed()
    }

    fn report<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<JobReport, CallError>> {
        async move {
            let answer = self.client.json(Method::GET, self.client.url([id]), CallBody::Empty).await;
            self.read(&answer.map_err(about_one_job)?)
        }
        .boxed()
    }

    fn list(&self, since: i64) -> BoxFuture<'_, Result<Vec<JobReport>, CallError>> {
        self.list_jobs(since).boxed()
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let url = self.client.url([id, "cancel"]);
            self.client.act(Method::POST, url, CallBody::Empty).await.map_err(about_one_job)
        }
        .boxed()
    }

    fn download<'a>(&'a self, job: &'a JobReport, to: &'a Path) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            // Behind a gateway, the address in the report is not the one that our key is for.
            let urls: Vec<Url> =
                job.result_files.iter().map(|_| self.client.url([job.id.as_str(), "results"])).collect();
            download_all(&self.client, &urls, to).await
        }
        .boxed()
    }

    fn read_result(&self, line: &[u8]) -> Result<JobResult, String> {
        read_result(&self.rows, line)
    }

    fn read_result_id(&self, line: &[u8]) -> Option<String> {
        read_result_id(line)
    }

    fn delete<'a>(&'a self, job: &'a JobReport) -> BoxFuture<'a, Result<(), CallError>> {
        self.client.delete(self.client.url([job.id.as_str()])).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_always_ends_and_its_rows_tell_how() {
        for (word, cancelled, expected) in [
            ("in_progress", false, JobState::InProgress),
            ("pondering", false, JobState::InProgress),
            ("canceling", true, JobState::Cancelling),
            ("ended", false, JobState::Completed),
            ("ended", true, JobState::Cancelled),
        ] {
            let at = cancelled.then_some("2026-11-19T06:00:00Z");
            let report = read_job(&json!({"id": "m", "processing_status": word, "cancel_initiated_at": at}));
            assert_eq!(report.unwrap().state, expected, "{word}");
        }
        let counted = json!({"processing": 1, "succeeded": 2, "errored": 3, "canceled": 4, "expired": 5});
        let report = read_job(&json!({"id": "m", "request_counts": counted, "results_url": "u"})).unwrap();
        assert_eq!(report.counts, Some(JobCounts { total: 15, completed: 2, failed: 12 }));
        assert_eq!((report.result_files.len(), report.key), (1, None));
    }
}
