//! Which request of which batch API a path is.

use super::vendor::BatchVendor;
use crate::recorder::RecordedRequest;

/// An operation of a batch API. What it does also depends on the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchOperation<'p> {
    /// All files: upload, list.
    Files,
    /// One file: get, delete.
    File(&'p str),
    /// The bytes of a file.
    Content(&'p str),
    /// The first step of Google's uploads.
    BeginUpload,
    /// Their second step.
    FinishUpload(&'p str),
    /// The second step of Together's uploads: the bytes.
    Put(&'p str),
    /// Their third step.
    Preprocess(&'p str),
    /// All jobs: create, list.
    Jobs,
    /// Creates a job for this model.
    CreateFor(&'p str),
    /// One job: get, delete.
    Job(&'p str),
    Cancel(&'p str),
    Delete(&'p str),
    /// The results of a job that has no file for them.
    Results(&'p str),
}

/// A request of a batch API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRoute<'p> {
    pub(crate) vendor: BatchVendor,
    pub(crate) operation: BatchOperation<'p>,
    pub(crate) query: &'p str,
}

/// The prefixes under which the vendors that share paths are served, and the start of the vendor's own paths.
const PREFIXES: &[(&str, BatchVendor)] = &[
    ("/azure/openai/v1", BatchVendor::Azure),
    ("/groq/openai/v1", BatchVendor::Groq),
    ("/together/v1", BatchVendor::Together),
    ("/mistral/v1", BatchVendor::Mistral),
];

/// The path of a live call without the prefix of its vendor.
pub(crate) fn live_path(path: &str) -> std::borrow::Cow<'_, str> {
    let prefixes = PREFIXES.iter().map(|(prefix, _)| *prefix).chain(["/openai/v1"]);
    match prefixes.into_iter().find_map(|prefix| path.strip_prefix(prefix)) {
        Some(rest) if rest.starts_with('/') => format!("/v1{rest}").into(),
        _ => path.into(),
    }
}

impl<'p> BatchRoute<'p> {
    /// The request of a batch API that this is, if it is one.
    pub(crate) fn read(request: &'p RecordedRequest) -> Option<Self> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let (vendor, operation) = gemini(path, query, request)
            .map(|operation| (BatchVendor::Gemini, operation))
            .or_else(|| anthropic(path).map(|operation| (BatchVendor::Anthropic, operation)))
            .or_else(|| {
                let (vendor, rest) = vendor_of(path, request)?;
                Some((vendor, operation_of(vendor, rest)?))
            })?;
        Some(Self { vendor, operation, query })
    }

    /// A parameter of the query, as it was written.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'p str> {
        self.parameters(name).next()
    }

    /// All values of a parameter of the query.
    pub(crate) fn parameters(&self, name: &str) -> impl Iterator<Item = &'p str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(move |(held, _)| *held == name).map(|(_, value)| value)
    }

    /// A number in the query, or `usual`.
    pub(crate) fn number(&self, name: &str, usual: usize) -> usize {
        self.parameter(name).and_then(|text| text.parse().ok()).unwrap_or(usual)
    }

    /// Whether the body may be so large that it belongs in a file.
    pub(crate) fn takes_large_body(&self) -> bool {
        matches!(
            self.operation,
            BatchOperation::Files
                | BatchOperation::FinishUpload(_)
                | BatchOperation::Put(_)
                | BatchOperation::Jobs
                | BatchOperation::CreateFor(_)
        )
    }

    /// Whether this uploads a file.
    pub(crate) fn is_upload(&self) -> bool {
        matches!(
            self.operation,
            BatchOperation::Files | BatchOperation::FinishUpload(_) | BatchOperation::Put(_)
        )
    }
}

fn vendor_of<'p>(path: &'p str, request: &RecordedRequest) -> Option<(BatchVendor, &'p str)> {
    let prefixed = PREFIXES.iter().find_map(|(prefix, vendor)| Some((*vendor, path.strip_prefix(prefix)?)));
    if prefixed.is_some() {
        return prefixed;
    }
    if let Some(rest) = path.strip_prefix("/openai/v1") {
        let is_azure = request.header("api-key").is_some();
        return Some((if is_azure { BatchVendor::Azure } else { BatchVendor::Groq }, rest));
    }
    let rest = path.strip_prefix("/v1")?;
    match rest.starts_with("/batch/jobs") {
        true => Some((BatchVendor::Mistral, rest)),
        // Anthropic's files are not those of batches.
        false if request.header("anthropic-version").is_some() => None,
        false => Some((BatchVendor::OpenAi, rest)),
    }
}

fn operation_of(vendor: BatchVendor, rest: &str) -> Option<BatchOperation<'_>> {
    if rest == "/files" || rest == "/files/upload" {
        return Some(BatchOperation::Files);
    }
    if let Some(id) = rest.strip_prefix("/files/") {
        return Some(match id.split_once('/') {
            Some((id, "content")) => BatchOperation::Content(id),
            Some((id, "bytes")) if vendor == BatchVendor::Together => BatchOperation::Put(id),
            Some((id, "preprocess")) if vendor == BatchVendor::Together => BatchOperation::Preprocess(id),
            _ => BatchOperation::File(id),
        });
    }
    let jobs = if vendor == BatchVendor::Mistral { "/batch/jobs" } else { "/batches" };
    one_of_jobs(rest.strip_prefix(jobs)?)
}

fn one_of_jobs(rest: &str) -> Option<BatchOperation<'_>> {
    if rest.is_empty() || rest == "/" {
        return Some(BatchOperation::Jobs);
    }
    let id = rest.strip_prefix('/')?;
    Some(match id.split_once('/') {
        None => BatchOperation::Job(id),
        Some((id, "cancel")) => BatchOperation::Cancel(id),
        Some((id, "results")) => BatchOperation::Results(id),
        Some(_) => return None,
    })
}

fn anthropic(path: &str) -> Option<BatchOperation<'_>> {
    one_of_jobs(path.strip_prefix("/v1/messages/batches")?)
}

/// Google's version `v1` shares paths with OpenAI, but its key has a header of its own.
fn gemini<'p>(path: &'p str, query: &'p str, request: &RecordedRequest) -> Option<BatchOperation<'p>> {
    let of_version = |path: &'p str| {
        let stable = || path.strip_prefix("v1/").filter(|_| request.header("x-goog-api-key").is_some());
        path.strip_prefix("v1beta/").or_else(stable)
    };
    if path.strip_prefix("/upload/").and_then(of_version) == Some("files") {
        let upload = query.split('&').find_map(|part| part.strip_prefix("upload_id="));
        return Some(upload.map_or(BatchOperation::BeginUpload, BatchOperation::FinishUpload));
    }
    if let Some(rest) = path.strip_prefix("/download/").and_then(of_version) {
        return rest.strip_prefix("files/")?.strip_suffix(":download").map(BatchOperation::Content);
    }
    let rest = of_version(path.strip_prefix('/')?)?;
    if rest == "files" {
        return Some(BatchOperation::Files);
    }
    if let Some(id) = rest.strip_prefix("files/") {
        return Some(match id.strip_suffix(":download") {
            Some(id) => BatchOperation::Content(id),
            None => BatchOperation::File(id),
        });
    }
    if let Some(model) = rest.strip_prefix("models/") {
        return model.strip_suffix(":batchGenerateContent").map(BatchOperation::CreateFor);
    }
    match rest.strip_prefix("batches") {
        Some("") => Some(BatchOperation::Jobs),
        Some(id) => {
            let id = id.strip_prefix('/')?;
            Some(match id.split_once(':') {
                Some((id, "cancel")) => BatchOperation::Cancel(id),
                Some((id, "delete")) => BatchOperation::Delete(id),
                Some(_) => return None,
                None => BatchOperation::Job(id),
            })
        }
        None => None,
    }
}
