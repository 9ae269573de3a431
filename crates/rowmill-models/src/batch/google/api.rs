//! Jobs of the Gemini API.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::{BatchApi, BatchRules, JobFile, JobReport, JobResult};
use rowmill_http::{Method, Url};
use rowmill_types::{CallError, Problem, Request};
use serde_json::{Value, json};

use super::job::read_job;
use super::result::{read_result, read_result_id};
use super::upload::upload_file;
use crate::batch::build::BatchParts;
use crate::batch::download::download_all;
use crate::batch::job_client::{CallBody, JobClient, about_one_job, internal};
use crate::batch::job_fields::text;
use crate::batch::row_translation::RowTranslation;
use crate::body::write_text;
use crate::call_error::CallErrorReporter;
use crate::google::client::{google_file_address, google_headers, missing_version};
use crate::google::wire::GoogleWire;
use crate::http_model::AnswerDelivery;

/// How many jobs a page of the list has.
const PAGE: &str = "100";

/// Gemini's batch API.
#[derive(Debug)]
pub(super) struct OperationJobs {
    pub(super) client: JobClient,
    pub(super) upload_url: Url,
    /// Where the content of files is; their names follow.
    download_url: Url,
    rows: RowTranslation,
    rules: BatchRules,
    model: String,
}

/// Builds the API.
pub(in crate::batch) fn build(parts: BatchParts<'_>) -> Result<Arc<dyn BatchApi>, Problem> {
    let BatchParts { setup, rules, http } = parts;
    let connection = &setup.connection;
    let model = setup.model.model.trim_start_matches("models/").to_owned();
    let version = missing_version(connection);
    let live = connection.address(&format!("{version}/models/{model}:generateContent"))?;
    let rows = RowTranslation {
        bodies: Box::new(GoogleWire::new(setup)?),
        files: connection.quirks.files,
        reporter: CallErrorReporter::new(connection, &live),
        max_request_bytes: rules.max_request_bytes,
    };
    let headers = google_headers(connection, AnswerDelivery::Whole)?;
    Ok(Arc::new(OperationJobs {
        client: JobClient::new(http, connection, headers, connection.address(version)?),
        upload_url: google_file_address(connection, "upload", "files")?,
        download_url: google_file_address(connection, "download", "")?,
        rows,
        rules,
        model,
    }))
}

impl OperationJobs {
    /// The address of something with this name, such as `batches/abc`.
    fn named(&self, name: &str, action: &str) -> Url {
        self.client.url(format!("{name}{action}").split('/'))
    }

    async fn create_job(&self, job: &JobFile, uploaded: Option<&str>) -> Result<JobReport, CallError> {
        let uploaded = uploaded.ok_or_else(|| internal("the file of the job is not uploaded"))?;
        let input = json!({"file_name": uploaded});
        let fields = json!({"batch": {"display_name": job.key, "input_config": input}});
        let url = self.client.url(["models", &format!("{}:batchGenerateContent", self.model)]);
        let answer = self.client.json(Method::POST, url, CallBody::Json(&fields)).await?;
        let report = self.read(&answer)?;
        Ok(JobReport {
            key: report.key.or_else(|| Some(job.key.clone())),
            input_file: report.input_file.or_else(|| Some(uploaded.to_owned())),
            ..report
        })
    }

    fn read(&self, answer: &Value) -> Result<JobReport, CallError> {
        read_job(answer, &self.client.connection).ok_or_else(|| self.client.unread("it is not a job", answer))
    }

    async fn list_jobs(&self, since: i64) -> Result<Vec<JobReport>, CallError> {
        let mut found: Vec<JobReport> = Vec::new();
        let mut token = String::new();
        loop {
            let mut url = self.client.url(["batches"]);
            url.query_pairs_mut().append_pair("pageSize", PAGE);
            if !token.is_empty() {
                url.query_pairs_mut().append_pair("pageToken", &token);
            }
            let answer = self.client.json(Method::GET, url, CallBody::Empty).await?;
            let jobs = answer.get("operations").and_then(Value::as_array).into_iter().flatten();
            let page: Vec<JobReport> = jobs.map(|job| self.read(job)).collect::<Result<_, _>>()?;
            let is_older = |job: &JobReport| job.created_at.is_some_and(|created| created < since);
            let next = text(&answer, "nextPageToken").filter(|next| *next != token).unwrap_or_default();
            // A page may be empty although others follow.
            let is_past = !page.is_empty() && page.iter().all(is_older);
            found.extend(page);
            if next.is_empty() || is_past {
                found.retain(|job| !is_older(job));
                found.sort_by_key(|job| std::cmp::Reverse(job.created_at));
                return Ok(found);
            }
            token = next.to_owned();
        }
    }

    /// The address of the content of a file.
    fn content(&self, file: &str) -> Url {
        let mut url = self.download_url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(format!("{file}:download").split('/'));
        }
        url.query_pairs_mut().append_pair("alt", "media");
        url
    }

    /// Tries to delete everything, and returns the first error.
    async fn delete_job(&self, job: &JobReport) -> Result<(), CallError> {
        let mut result = Ok(());
        if let Some(file) = &job.input_file {
            result = result.and(self.client.delete(self.named(file, "")).await);
        }
        for file in &job.result_files {
            // The provider may not let its own files be deleted; they expire.
            let deleted = self.client.delete(self.named(file, "")).await;
            result = result.and(deleted.or_else(|error| match error.status {
                Some(400 | 403) => Ok(()),
                _ => Err(error),
            }));
        }
        result.and(self.client.delete(self.named(&job.id, "")).await)
    }
}

impl BatchApi for OperationJobs {
    fn rules(&self) -> &BatchRules {
        &self.rules
    }

    fn write_request(&self, custom_id: &str, request: &Request, out: &mut Vec<u8>) -> Result<(), CallError> {
        let body = self.rows.body(request)?;
        let mut head = br#"{"key":"#.to_vec();
        write_text(&mut head, custom_id);
        head.extend_from_slice(br#","request":"#);
        self.rows.append_line(&[&head, &body, b"}"], out)
    }

    fn upload<'a>(&'a self, job: &'a JobFile) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        upload_file(self, job).boxed()
    }

    fn create<'a>(
        &'a self,
        job: &'a JobFile,
        uploaded: Option<&'a str>,
    ) -> BoxFuture<'a, Result<JobReport, CallError>> {
        self.create_job(job, uploaded).boxed()
    }

    fn report<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<JobReport, CallError>> {
        async move {
            let answer = self.client.json(Method::GET, self.named(id, ""), CallBody::Empty).await;
            self.read(&answer.map_err(about_one_job)?)
        }
        .boxed()
    }

    fn list(&self, since: i64) -> BoxFuture<'_, Result<Vec<JobReport>, CallError>> {
        self.list_jobs(since).boxed()
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let url = self.named(id, ":cancel");
            self.client.act(Method::POST, url, CallBody::Empty).await.map_err(about_one_job)
        }
        .boxed()
    }

    fn download<'a>(&'a self, job: &'a JobReport, to: &'a Path) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let urls: Vec<Url> = job.result_files.iter().map(|file| self.content(file)).collect();
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
        self.delete_job(job).boxed()
    }
}
