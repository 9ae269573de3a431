//! Jobs that refer to an uploaded file, as OpenAI's do.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::{BatchApi, BatchRules, JobFile, JobKeyReporting, JobReport, JobResult};
use rowmill_http::{HttpClient, Method, Url};
use rowmill_types::{CallError, Completion, Problem, Request};
use serde_json::{Map, Value, json};

use super::dialect::{EndpointForm, FileDialect, JobDeletion, JobPaging, LineForm, ModelPlace, WindowForm};
use super::job::read_job;
use super::result::{read_result, read_result_id};
use crate::batch::build::BatchParts;
use crate::batch::download::download_all;
use crate::batch::job_client::{CallBody, JobClient, about_one_job, cut_upload, internal};
use crate::batch::job_fields::{count, text};
use crate::batch::job_file::framed_body;
use crate::batch::row_translation::{BodyTranslation, RowTranslation};
use crate::body::write_text;
use crate::build_model::ModelSetup;
use crate::call_error::CallErrorReporter;
use crate::chat::client::openai_target;
use crate::chat::wire::ChatWire;
use crate::files::{FormFile, FormFrame};
use crate::http_model::AnswerDelivery;
use crate::provider::ProviderProtocol;
use crate::responses::wire::{RequestCarrier, ResponsesWire};

/// How many jobs a page of the list has.
const PAGE: usize = 100;

/// The field of a job's metadata that holds our key.
pub(super) const KEY_FIELD: &str = "rowmill_job";

/// A batch API in OpenAI's style.
#[derive(Debug)]
struct FileJobs {
    client: JobClient,
    rows: RowTranslation,
    rules: BatchRules,
    dialect: &'static FileDialect,
    endpoint: String,
    model: String,
}

/// Builds the API.
pub(in crate::batch) fn build(
    parts: BatchParts<'_>,
    dialect: &'static FileDialect,
) -> Result<Arc<dyn BatchApi>, Problem> {
    let BatchParts { setup, rules, http } = parts;
    let (path, bodies) = translation(setup);
    let connection = &setup.connection;
    let target = openai_target(connection, path, AnswerDelivery::Whole)?;
    let base = connection.address("")?;
    let is_versioned = base.path().trim_end_matches('/').ends_with("/v1");
    let version = match dialect.endpoint {
        EndpointForm::AsInBaseUrl if !is_versioned => "",
        EndpointForm::Versioned | EndpointForm::AsInBaseUrl => "/v1",
    };
    let rows = RowTranslation {
        bodies,
        files: connection.quirks.files,
        reporter: CallErrorReporter::new(connection, target.url()),
        max_request_bytes: rules.max_request_bytes,
    };
    Ok(Arc::new(FileJobs {
        client: client(setup, http, &target, base),
        rows,
        rules,
        dialect,
        endpoint: format!("{version}{path}"),
        model: setup.model.model.clone(),
    }))
}

fn client(
    setup: &ModelSetup,
    http: &HttpClient,
    target: &rowmill_http::RequestTarget,
    base: Url,
) -> JobClient {
    JobClient::new(http, &setup.connection, target.headers().clone(), base)
}

/// The path of live calls, and the translation of their bodies.
fn translation(setup: &ModelSetup) -> (&'static str, Box<dyn BodyTranslation>) {
    match setup.connection.protocol {
        ProviderProtocol::Responses => {
            ("/responses", Box::new(ResponsesWire::new(setup, RequestCarrier::Whole)))
        }
        _ => ("/chat/completions", Box::new(ChatWire::new(setup, AnswerDelivery::Whole))),
    }
}

impl FileJobs {
    /// The fields of a new job.
    fn new_job(&self, job: &JobFile, uploaded: &str) -> Value {
        let mut fields = Map::new();
        let input = if self.dialect.input.ends_with('s') { json!([uploaded]) } else { json!(uploaded) };
        fields.insert(self.dialect.input.to_owned(), input);
        fields.insert("endpoint".to_owned(), json!(self.endpoint));
        if self.dialect.model == ModelPlace::Job {
            fields.insert("model".to_owned(), json!(self.model));
        }
        let hours = self.rules.window.as_secs() / 3600;
        let (name, window) = match self.dialect.window {
            WindowForm::Hours => ("timeout_hours", json!(hours)),
            WindowForm::Text if hours > 24 && hours.is_multiple_of(24) => {
                ("completion_window", json!(format!("{}d", hours / 24)))
            }
            WindowForm::Text => ("completion_window", json!(format!("{hours}h"))),
        };
        fields.insert(name.to_owned(), window);
        if self.rules.job_key == JobKeyReporting::Reported {
            fields.insert("metadata".to_owned(), json!({KEY_FIELD: job.key}));
        }
        Value::Object(fields)
    }

    fn job_url(&self, more: &[&str]) -> Url {
        self.client.url(self.dialect.jobs.iter().copied().chain(more.iter().copied()))
    }

    async fn upload_file(&self, job: &JobFile) -> Result<Option<String>, CallError> {
        let mut fields = vec![("purpose", self.dialect.purpose)];
        fields.extend_from_slice(self.dialect.upload_fields);
        // Lines of JSON do not begin with two hyphens, so the boundary is in none of them.
        let boundary = format!("rowmill-{}", job.key);
        let name = format!("{}.jsonl", job.key);
        let about = FormFile { name: &name, media_type: "application/jsonl", boundary: &boundary };
        let frame = FormFrame::new(&fields, about)?;
        let body = framed_body(job, frame.head, frame.tail).await?;
        let mut headers = self.client.headers_with(&[])?;
        headers.insert("content-type", frame.content_type);
        let url = self.client.url(["files"]);
        let answer = self.client.send_sized(&url, headers, body).await?;
        let answer = self.client.read_json(&url, answer).await?;
        let id =
            text(&answer, "id").ok_or_else(|| self.client.unread("it does not name the file", &answer))?;
        match count(&answer, "bytes") {
            Some(received) if received != job.bytes => Err(cut_upload(received, job.bytes)),
            _ => Ok(Some(id.to_owned())),
        }
    }

    async fn create_job(&self, job: &JobFile, uploaded: Option<&str>) -> Result<JobReport, CallError> {
        let uploaded = uploaded.ok_or_else(|| internal("the file of the job is not uploaded"))?;
        let fields = self.new_job(job, uploaded);
        let answer = self.client.json(Method::POST, self.job_url(&[]), CallBody::Json(&fields)).await?;
        let report = self.read(&answer)?;
        Ok(JobReport { input_file: report.input_file.or_else(|| Some(uploaded.to_owned())), ..report })
    }

    fn read(&self, answer: &Value) -> Result<JobReport, CallError> {
        // One provider wraps a new job.
        let job = answer.get("job").filter(|job| job.is_object()).unwrap_or(answer);
        read_job(job, &self.client.connection).ok_or_else(|| self.client.unread("it is not a job", answer))
    }

    async fn list_jobs(&self, since: i64) -> Result<Vec<JobReport>, CallError> {
        let mut found: Vec<JobReport> = Vec::new();
        let mut number = 0;
        loop {
            let url = self.page_url(number, found.last());
            let answer = self.client.json(Method::GET, url, CallBody::Empty).await?;
            let jobs = answer.as_array().or_else(|| answer.get("data")?.as_array());
            let page: Vec<JobReport> =
                jobs.into_iter().flatten().map(|job| self.read(job)).collect::<Result<_, _>>()?;
            let is_last = match self.dialect.paging {
                JobPaging::None => true,
                JobPaging::After => answer.get("has_more").and_then(Value::as_bool) != Some(true),
                JobPaging::Numbered => page.len() < PAGE,
            };
            let is_older = |job: &JobReport| job.created_at.is_some_and(|created| created < since);
            // A server that ignores the page that it is asked for sends the same one for ever.
            let repeats = page.first().is_some_and(|job| found.iter().any(|known| known.id == job.id));
            let is_end = is_last || repeats || page.iter().all(is_older);
            if !repeats {
                found.extend(page);
            }
            if is_end {
                found.retain(|job| !is_older(job));
                found.sort_by_key(|job| std::cmp::Reverse(job.created_at));
                return Ok(found);
            }
            number += 1;
        }
    }

    fn page_url(&self, number: usize, last: Option<&JobReport>) -> Url {
        let mut url = self.job_url(&[]);
        match self.dialect.paging {
            JobPaging::None => {}
            JobPaging::Numbered => {
                url.query_pairs_mut()
                    .append_pair("page", &number.to_string())
                    .append_pair("page_size", &PAGE.to_string());
            }
            JobPaging::After => {
                url.query_pairs_mut().append_pair("limit", &PAGE.to_string());
                if let Some(last) = last {
                    url.query_pairs_mut().append_pair("after", &last.id);
                }
            }
        }
        url
    }

    /// Tries to delete everything, and returns the first error.
    async fn delete_job(&self, job: &JobReport) -> Result<(), CallError> {
        let files = job.input_file.iter().chain(&job.result_files);
        let mut urls: Vec<Url> = files.map(|file| self.client.url(["files", file])).collect();
        if self.dialect.deletion == JobDeletion::JobToo {
            urls.push(self.job_url(&[&job.id]));
        }
        let mut result = Ok(());
        for url in urls {
            let deleted = self.client.delete(url).await;
            result = result.and(deleted);
        }
        result
    }
}

impl BatchApi for FileJobs {
    fn rules(&self) -> &BatchRules {
        &self.rules
    }

    fn write_request(&self, custom_id: &str, request: &Request, out: &mut Vec<u8>) -> Result<(), CallError> {
        let mut body = self.rows.body(request)?;
        if self.dialect.model == ModelPlace::Job {
            let model = format!("{{\"model\":{},", Value::from(self.model.as_str()));
            if body.starts_with(model.as_bytes()) {
                body.splice(..model.len(), [b'{']);
            }
        }
        let mut head = br#"{"custom_id":"#.to_vec();
        write_text(&mut head, custom_id);
        if self.dialect.line == LineForm::Addressed {
            head.extend_from_slice(br#","method":"POST","url":"#);
            write_text(&mut head, &self.endpoint);
        }
        head.extend_from_slice(br#","body":"#);
        self.rows.append_line(&[&head, &body, b"}"], out)
    }

    fn upload<'a>(&'a self, job: &'a JobFile) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        self.upload_file(job).boxed()
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
            let answer = self.client.json(Method::GET, self.job_url(&[id]), CallBody::Empty).await;
            self.read(&answer.map_err(about_one_job)?)
        }
        .boxed()
    }

    fn list(&self, since: i64) -> BoxFuture<'_, Result<Vec<JobReport>, CallError>> {
        self.list_jobs(since).boxed()
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let url = self.job_url(&[id, "cancel"]);
            self.client.act(Method::POST, url, CallBody::Empty).await.map_err(about_one_job)
        }
        .boxed()
    }

    fn download<'a>(&'a self, job: &'a JobReport, to: &'a Path) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            let urls: Vec<Url> =
                job.result_files.iter().map(|file| self.client.url(["files", file, "content"])).collect();
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

/// The outcome of a row.
pub(super) type RowOutcome = Result<Completion, CallError>;
