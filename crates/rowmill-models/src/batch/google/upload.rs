//! The upload of a job's file: ask for an address, then send the file there.

use rowmill_core::ports::JobFile;
use rowmill_http::{HeaderMap, HeaderValue, Url};
use rowmill_types::{CallError, CallFailure};
use serde_json::{Value, json};

use super::api::OperationJobs;
use crate::batch::job_client::cut_upload;
use crate::batch::job_fields::{count, text};
use crate::batch::job_file::framed_body;

const MEDIA_TYPE: &str = "application/jsonl";

/// Uploads the file of a job and returns its name, such as `files/abc`.
pub(super) async fn upload_file(api: &OperationJobs, job: &JobFile) -> Result<Option<String>, CallError> {
    let address = upload_address(api, job).await?;
    let body = framed_body(job, Vec::new(), Vec::new()).await?;
    // The address itself is the authorization, so the key is sent only to the original origin.
    let mut headers = match address.origin() == api.upload_url.origin() {
        true => api.client.headers_with(&[])?,
        false => HeaderMap::new(),
    };
    headers.insert("x-goog-upload-offset", HeaderValue::from_static("0"));
    headers.insert("x-goog-upload-command", HeaderValue::from_static("upload, finalize"));
    let answer = api.client.send_sized(&address, headers, body).await?;
    let status = answer.headers().get("x-goog-upload-status").and_then(|value| value.to_str().ok());
    if status.is_some_and(|status| status != "final") {
        return Err(CallError::new(CallFailure::Server, "the provider did not finish the upload"));
    }
    let answer = api.client.read_json(&address, answer).await?;
    let file = answer.get("file").unwrap_or(&Value::Null);
    let name = text(file, "name").ok_or_else(|| api.client.unread("it does not name the file", &answer))?;
    match count(file, "sizeBytes") {
        Some(received) if received != job.bytes => Err(cut_upload(received, job.bytes)),
        _ => Ok(Some(name.to_owned())),
    }
}

/// Asks where to send the file.
async fn upload_address(api: &OperationJobs, job: &JobFile) -> Result<Url, CallError> {
    let headers = api.client.headers_with(&[
        ("x-goog-upload-protocol", "resumable"),
        ("x-goog-upload-command", "start"),
        ("x-goog-upload-header-content-length", &job.bytes.to_string()),
        ("x-goog-upload-header-content-type", MEDIA_TYPE),
    ])?;
    let about = json!({"file": {"display_name": job.key, "mime_type": MEDIA_TYPE}});
    let answer = api.client.post_with(&api.upload_url, headers, &about).await?;
    let address = answer.headers().get("x-goog-upload-url").and_then(|value| value.to_str().ok());
    let address = address.and_then(|text| Url::parse(text).ok());
    address.ok_or_else(|| api.client.unread("the provider does not say where to upload to", &json!({})))
}
