//! The file APIs of the providers: uploads and deletions over HTTP.

use std::time::Duration;

use bytes::Bytes;
use rowmill_http::{HeaderMap, HeaderName, HeaderValue, HttpAnswer, HttpClient, Method, RequestTarget, Url};
use rowmill_types::{Attachment, CallError, CallFailure};
use serde_json::{Value, json};

use super::cache::RemoteFile;
use super::forms::name_for_google;
use super::multipart;
use super::rules::FileStorage;
use crate::call_error::CallErrorReporter;
use crate::wire_protocol::UnreadableAnswer;

/// The header that Anthropic requires for files as long as they are a beta.
pub(crate) const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
/// Its value.
const FILES_BETA: &str = "files-api-2025-04-14";

/// How long OpenAI keeps a file that is not deleted: a day, in seconds.
const KEPT: &str = "86400";

/// The maximum size of a response; responses of file APIs are small.
const ANSWER_LIMIT: usize = 1 << 20;

/// The delay before the first status check: Gemini processes some files before they can be used. It doubles
/// with each check.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long to wait for that in total.
const PATIENCE: Duration = Duration::from_secs(180);

/// The addresses of a file API, and the headers for it.
#[derive(Debug)]
pub(crate) struct UploadAddress {
    /// Where files are uploaded to.
    pub(crate) upload: Url,
    /// Where files are found by their ids.
    pub(crate) files: Url,
    /// The headers of model calls: the key and those of the configuration.
    pub(crate) headers: HeaderMap,
}

/// A provider's file API.
#[derive(Debug)]
pub(super) struct FileStore {
    pub(super) http: HttpClient,
    pub(super) storage: FileStorage,
    pub(super) place: UploadAddress,
    pub(super) reporter: CallErrorReporter,
}

impl FileStore {
    pub(super) fn new(
        http: HttpClient,
        storage: FileStorage,
        mut place: UploadAddress,
        reporter: CallErrorReporter,
    ) -> Self {
        for name in ["content-type", "accept"] {
            place.headers.remove(name);
        }
        if storage == FileStorage::Anthropic {
            add_beta(&mut place.headers, FILES_BETA);
        }
        Self { http, storage, place, reporter }
    }

    /// The header that a request needs to refer to files.
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let value = self.place.headers.get(BETA).filter(|_| self.storage == FileStorage::Anthropic)?;
        Some((BETA, value.clone()))
    }

    /// Uploads a file.
    pub(super) async fn upload(&self, file: &Attachment) -> Result<RemoteFile, CallError> {
        let uploaded = match self.storage {
            FileStorage::OpenAi => {
                let expiry = [("expires_after[anchor]", "created_at"), ("expires_after[seconds]", KEPT)];
                let fields = [[("purpose", "user_data")].as_slice(), &expiry].concat();
                self.send_form(&fields, file).await
            }
            FileStorage::Anthropic => self.send_form(&[], file).await,
            FileStorage::Google => self.send_resumable(file).await,
            FileStorage::None => Err(internal("the provider does not store files")),
        };
        uploaded.map_err(|error| about(file, error))
    }

    /// Deletes a file, if the provider allows it.
    pub(super) async fn delete(&self, remote: &RemoteFile) {
        let Ok(target) = self.target(self.address_of(&remote.id), self.place.headers.clone()) else { return };
        // A failure only wastes space at the provider, where files expire or remain in the account.
        drop(self.http.send(Method::DELETE, &target, Bytes::new()).await);
    }

    async fn send_form(&self, fields: &[(&str, &str)], file: &Attachment) -> Result<RemoteFile, CallError> {
        let form = multipart::form(fields, file)?;
        let mut headers = self.place.headers.clone();
        headers.insert(HeaderName::from_static("content-type"), form.content_type);
        let target = self.target(self.place.upload.clone(), headers)?;
        let answer = self.send(Method::POST, &target, form.body).await?;
        let answer = self.json(answer).await?;
        let id = answer.get("id").and_then(Value::as_str).ok_or_else(|| self.unread(&answer))?;
        Ok(RemoteFile { id: id.to_owned(), reference: id.to_owned() })
    }

    /// Google's method: ask for an upload address, send the file there, wait until it is ready.
    async fn send_resumable(&self, file: &Attachment) -> Result<RemoteFile, CallError> {
        let mut headers = self.place.headers.clone();
        let media_type = name_for_google(&file.media_type);
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-goog-upload-protocol", "resumable"),
            ("x-goog-upload-command", "start"),
            ("x-goog-upload-header-content-length", &file.bytes.len().to_string()),
            ("x-goog-upload-header-content-type", media_type),
        ] {
            headers.insert(HeaderName::from_static(name), header_value(value)?);
        }
        let target = self.target(self.place.upload.clone(), headers)?;
        let about = json!({"file": {"display_name": file.name}}).to_string();
        let answer = self.send(Method::POST, &target, about.into()).await?;
        let address = answer.headers().get("x-goog-upload-url").and_then(|value| value.to_str().ok());
        let address = address.and_then(|text| Url::parse(text).ok());
        let Some(address) = address else { return Err(self.unread(&json!({}))) };
        // The upload address itself is the authorization, so the key is sent only to the original origin.
        let mut headers = match address.origin() == self.place.upload.origin() {
            true => self.place.headers.clone(),
            false => HeaderMap::new(),
        };
        headers.insert(HeaderName::from_static("x-goog-upload-offset"), HeaderValue::from_static("0"));
        let command = HeaderValue::from_static("upload, finalize");
        headers.insert(HeaderName::from_static("x-goog-upload-command"), command);
        let target = self.target(address, headers)?;
        let answer = self.send(Method::POST, &target, file.bytes.clone()).await?;
        let answer = self.json(answer).await?;
        self.ready(answer.get("file").cloned().unwrap_or_default()).await
    }

    /// Waits until a file can be used.
    async fn ready(&self, mut file: Value) -> Result<RemoteFile, CallError> {
        let text = |file: &Value, field: &str| file.get(field).and_then(Value::as_str).map(str::to_owned);
        let (Some(name), Some(reference)) = (text(&file, "name"), text(&file, "uri")) else {
            return Err(self.unread(&file));
        };
        let id = name.strip_prefix("files/").unwrap_or(&name).to_owned();
        let target = self.target(self.address_of(&id), self.place.headers.clone())?;
        let (mut wait, mut waited) = (FIRST_WAIT, Duration::ZERO);
        loop {
            match file.get("state").and_then(Value::as_str) {
                Some("PROCESSING" | "STATE_UNSPECIFIED") if waited < PATIENCE => {}
                Some("PROCESSING" | "STATE_UNSPECIFIED") => {
                    let what = format!("the provider had not processed it after {} s", PATIENCE.as_secs());
                    return Err(CallError::new(CallFailure::Server, what));
                }
                Some("FAILED") => {
                    let why = file.pointer("/error/message").and_then(Value::as_str);
                    let what = format!("the provider cannot read it: {}", why.unwrap_or("no reason given"));
                    return Err(CallError::new(CallFailure::Refused, what));
                }
                _ => return Ok(RemoteFile { id, reference }),
            }
            tokio::time::sleep(wait).await;
            waited += wait;
            wait = (wait * 2).min(LONGEST_WAIT);
            file = self.json(self.send(Method::GET, &target, Bytes::new()).await?).await?;
        }
    }

    fn address_of(&self, id: &str) -> Url {
        let mut url = self.place.files.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(id);
        }
        url
    }

    fn target(&self, url: Url, headers: HeaderMap) -> Result<RequestTarget, CallError> {
        RequestTarget::new(url, headers).map_err(|problem| internal(&problem.message))
    }

    /// Sends a request and turns any response without a success status into an error.
    async fn send(
        &self,
        method: Method,
        target: &RequestTarget,
        body: Bytes,
    ) -> Result<HttpAnswer, CallError> {
        let answer = self.http.send(method, target, body).await;
        let answer = answer.map_err(|failure| self.reporter.transport_error(&failure))?;
        let status = answer.status();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let headers = answer.headers().clone();
        let body = answer.body(ANSWER_LIMIT).await.unwrap_or_default();
        Err(self.reporter.status_error(status, &headers, &body))
    }

    async fn json(&self, answer: HttpAnswer) -> Result<Value, CallError> {
        let status = answer.status();
        let body = answer.body(ANSWER_LIMIT).await;
        let body = body.map_err(|failure| self.reporter.transport_error(&failure))?;
        serde_json::from_slice(&body)
            .map_err(|error| self.reporter.unreadable_error(status, error.into(), &body))
    }

    fn unread(&self, answer: &Value) -> CallError {
        let what = "the answer does not name the file".to_owned();
        self.reporter.unreadable_error(200, UnreadableAnswer::Malformed(what), answer.to_string().as_bytes())
    }
}

/// Adds a beta to those that the headers already request.
pub(crate) fn add_beta(headers: &mut HeaderMap, beta: &'static str) {
    let betas = headers.get(BETA).and_then(|value| value.to_str().ok());
    let both = betas.and_then(|betas| HeaderValue::from_str(&format!("{betas},{beta}")).ok());
    headers.insert(BETA, both.unwrap_or(HeaderValue::from_static(beta)));
}

fn header_value(text: &str) -> Result<HeaderValue, CallError> {
    HeaderValue::from_str(text).map_err(|error| internal(&error.to_string()))
}

fn internal(what: &str) -> CallError {
    CallError::new(CallFailure::Internal, what)
}

/// An error that names the file. A failed upload does not mean that the model is unknown.
fn about(file: &Attachment, error: CallError) -> CallError {
    let failure = match error.failure {
        CallFailure::UnknownModel | CallFailure::UnknownPath => CallFailure::Refused,
        failure => failure,
    };
    let message = match error.status {
        Some(413) => format!(
            "the file `{}` ({} bytes) is too large for the provider: {}",
            file.name,
            file.bytes.len(),
            error.message.with_mention_markers()
        ),
        _ => format!(
            "the file `{}` could not be uploaded: {}",
            file.name,
            error.message.with_mention_markers()
        ),
    };
    CallError { failure, message: message.into(), ..error }
}
