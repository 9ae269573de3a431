//! The file APIs of the vendors: upload, get, delete.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::outgoing_answer::OutgoingAnswer;
use crate::protocol::{RequestRefusal, VendorProtocol};
use crate::recorded_file::{FileTransfer, RecordedFile, check_media_type};
use crate::recorder::RecordedRequest;
use crate::simulator_state::SimulatorState;
use crate::upload_form::UploadForm;

/// The beta header value of Anthropic's files.
pub(crate) const FILES_BETA: &str = "files-api-2025-04-14";

/// The files that clients have uploaded.
#[derive(Debug, Default)]
pub(crate) struct StoredUploads(Mutex<UploadState>);

#[derive(Debug, Default)]
struct UploadState {
    count: u64,
    files: HashMap<String, UploadedFile>,
    /// Uploads that were started with Google's method: media type and name.
    begun: HashMap<String, (String, Option<String>)>,
}

#[derive(Debug, Clone)]
struct UploadedFile {
    seen: RecordedFile,
    /// How often it is still reported as being processed.
    processing: u32,
}

/// The operation of a file API that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileRequest<'p> {
    Upload,
    /// The first and second step of Google's uploads.
    Begin,
    Finish(&'p str),
    File(&'p str),
}

impl StoredUploads {
    fn lock(&self) -> MutexGuard<'_, UploadState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file that a call refers to.
    pub(crate) fn find(&self, id: &str) -> Option<RecordedFile> {
        self.lock().files.get(id).filter(|file| file.processing == 0).map(|file| file.seen.clone())
    }

    /// Whether there is a file with this id, ready or not.
    pub(crate) fn find_any(&self, id: &str) -> bool {
        self.lock().files.contains_key(id)
    }

    /// The media type and the name of an upload that was started with Google's method.
    pub(crate) fn begun(&self, upload: &str) -> Option<(String, Option<String>)> {
        self.lock().begun.get(upload).cloned()
    }

    /// The same, for the end of the upload.
    pub(crate) fn take_begun(&self, upload: &str) -> Option<(String, Option<String>)> {
        self.lock().begun.remove(upload)
    }

    /// Forgets all files, as if they had expired.
    pub(crate) fn clear(&self) {
        self.lock().files.clear();
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock().files.len() as u64
    }

    fn keep(&self, start: &str, seen: RecordedFile, processing: u32) -> String {
        let mut held = self.lock();
        held.count += 1;
        let id = format!("{start}{:012}", held.count);
        held.files.insert(id.clone(), UploadedFile { seen, processing });
        id
    }
}

impl SimulatorState {
    /// The answer to a request of a file API; `None` if it is for something else.
    pub(crate) fn serve_file(&self, request: &RecordedRequest) -> Option<OutgoingAnswer> {
        let (protocol, door) = door(request)?;
        let answered = protocol
            .check_headers(request, self.script.key.as_deref())
            .and_then(|()| self.file_answer(protocol, door, request));
        Some(match answered {
            Ok(outgoing) => outgoing,
            Err(refused) => OutgoingAnswer::json(refused.status, &refused.headers, &protocol.error(&refused)),
        })
    }

    fn file_answer(
        &self,
        protocol: VendorProtocol,
        door: FileRequest<'_>,
        request: &RecordedRequest,
    ) -> Result<OutgoingAnswer, RequestRefusal> {
        let beta = request.header("anthropic-beta").unwrap_or_default();
        if protocol == VendorProtocol::Messages && !beta.split(',').any(|one| one.trim() == FILES_BETA) {
            return Err(RequestRefusal::new(404, "Not found"));
        }
        match (door, request.method.as_str()) {
            (FileRequest::File(id), "GET") => self.look(protocol, id, request),
            (FileRequest::File(id), "DELETE") => {
                self.stored.lock().files.remove(id).ok_or_else(|| unknown_file_refusal(protocol, id))?;
                self.recorder.file_deleted();
                Ok(OutgoingAnswer::json(200, &[], &deleted(protocol, id)))
            }
            (FileRequest::Upload | FileRequest::Begin, "POST") if self.script.upload_status.is_some() => {
                Err(RequestRefusal::from_status(self.script.upload_status.unwrap_or_default()))
            }
            (FileRequest::Upload, "POST") => self.upload(protocol, request),
            (FileRequest::Begin, "POST") => self.begin(request),
            (FileRequest::Finish(upload), "POST") => self.finish(upload, request),
            _ => Err(RequestRefusal::new(405, "the method is not allowed here")),
        }
    }

    fn upload(
        &self,
        protocol: VendorProtocol,
        request: &RecordedRequest,
    ) -> Result<OutgoingAnswer, RequestRefusal> {
        let form = UploadForm::read(request)?;
        let Some(file) = &form.file else {
            return Err(RequestRefusal::invalid("'file' is a required property"));
        };
        if protocol != VendorProtocol::Messages && form.field("purpose") != Some("user_data") {
            return Err(RequestRefusal::invalid("'purpose' must be user_data"));
        }
        check_media_type(&file.media_type, file.bytes)?;
        let seen =
            RecordedFile::from_bytes(Some(&file.name), &file.media_type, file.bytes, FileTransfer::Upload);
        let start = if protocol == VendorProtocol::Messages { "file_" } else { "file-" };
        let id = self.stored.keep(start, seen.clone(), 0);
        self.recorder.file_uploaded();
        Ok(OutgoingAnswer::json(200, &[], &described(protocol, &id, &seen)))
    }

    fn begin(&self, request: &RecordedRequest) -> Result<OutgoingAnswer, RequestRefusal> {
        let wanted = [("x-goog-upload-protocol", "resumable"), ("x-goog-upload-command", "start")];
        if wanted.iter().any(|(name, value)| request.header(name) != Some(*value)) {
            return Err(RequestRefusal::invalid("Invalid upload protocol or command."));
        }
        let Some(kind) = request.header("x-goog-upload-header-content-type") else {
            return Err(RequestRefusal::invalid("The content type of the file is missing."));
        };
        let name = request.json().pointer("/file/display_name").and_then(Value::as_str).map(str::to_owned);
        let mut held = self.stored.lock();
        held.count += 1;
        let upload = held.count.to_string();
        held.begun.insert(upload.clone(), (kind.to_owned(), name));
        let host = request.header("host").unwrap_or_default();
        let url = format!("http://{host}/upload/v1beta/files?upload_id={upload}&upload_protocol=resumable");
        Ok(OutgoingAnswer::json(200, &[("x-goog-upload-url".to_owned(), url)], &json!({})))
    }

    fn finish(&self, upload: &str, request: &RecordedRequest) -> Result<OutgoingAnswer, RequestRefusal> {
        let is_whole = request.header("x-goog-upload-command") == Some("upload, finalize")
            && request.header("x-goog-upload-offset") == Some("0");
        let begun = self.stored.lock().begun.remove(upload).filter(|_| is_whole);
        let (kind, name) = begun.ok_or_else(|| RequestRefusal::invalid("There is no such upload."))?;
        check_media_type(&kind, &request.body)?;
        let seen = RecordedFile::from_bytes(name.as_deref(), &kind, &request.body, FileTransfer::Upload);
        let processing = self.script.file_processing_polls;
        let id = self.stored.keep("f", seen.clone(), processing);
        self.recorder.file_uploaded();
        let status = [("x-goog-upload-status".to_owned(), "final".to_owned())];
        let body = json!({"file": google(&id, &seen, processing, request)});
        Ok(OutgoingAnswer::json(200, &status, &body))
    }

    fn look(
        &self,
        protocol: VendorProtocol,
        id: &str,
        request: &RecordedRequest,
    ) -> Result<OutgoingAnswer, RequestRefusal> {
        let mut held = self.stored.lock();
        let file = held.files.get_mut(id).ok_or_else(|| unknown_file_refusal(protocol, id))?;
        if protocol != VendorProtocol::Google {
            return Ok(OutgoingAnswer::json(200, &[], &described(protocol, id, &file.seen)));
        }
        file.processing = file.processing.saturating_sub(1);
        Ok(OutgoingAnswer::json(200, &[], &google(id, &file.seen, file.processing, request)))
    }
}

/// The operation of a request, if it is for files.
fn door(request: &RecordedRequest) -> Option<(VendorProtocol, FileRequest<'_>)> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    if matches!(path, "/upload/v1beta/files" | "/upload/v1/files") {
        let upload = query.split('&').find_map(|part| part.strip_prefix("upload_id="));
        return Some((VendorProtocol::Google, upload.map_or(FileRequest::Begin, FileRequest::Finish)));
    }
    if let Some(id) = path.strip_prefix("/v1beta/files/") {
        return Some((VendorProtocol::Google, FileRequest::File(id)));
    }
    let rest = path.strip_prefix("/v1/files")?;
    let is_anthropic = request.header("anthropic-version").is_some();
    let protocol = if is_anthropic { VendorProtocol::Messages } else { VendorProtocol::Responses };
    match rest.strip_prefix('/') {
        Some(id) => Some((protocol, FileRequest::File(id))),
        None if rest.is_empty() => Some((protocol, FileRequest::Upload)),
        None => None,
    }
}

fn described(protocol: VendorProtocol, id: &str, seen: &RecordedFile) -> Value {
    if protocol == VendorProtocol::Messages {
        return json!({
            "id": id, "type": "file", "filename": seen.name, "mime_type": seen.media_type,
            "size_bytes": seen.size, "created_at": "2026-01-01T00:00:00Z", "downloadable": false
        });
    }
    json!({
        "id": id, "object": "file", "bytes": seen.size, "created_at": 1_760_000_000,
        "expires_at": 1_760_086_400, "filename": seen.name, "purpose": "user_data", "status": "processed"
    })
}

fn google(id: &str, seen: &RecordedFile, processing: u32, request: &RecordedRequest) -> Value {
    let host = request.header("host").unwrap_or_default();
    json!({
        "name": format!("files/{id}"),
        "displayName": seen.name,
        "mimeType": seen.media_type,
        "sizeBytes": seen.size.to_string(),
        "uri": format!("http://{host}/v1beta/files/{id}"),
        "state": if processing > 0 { "PROCESSING" } else { "ACTIVE" }
    })
}

fn deleted(protocol: VendorProtocol, id: &str) -> Value {
    match protocol {
        VendorProtocol::Messages => json!({"id": id, "type": "file_deleted"}),
        VendorProtocol::Google => json!({}),
        _ => json!({"id": id, "object": "file", "deleted": true}),
    }
}

/// A vendor's error for a file that it does not have.
pub(crate) fn unknown_file_refusal(protocol: VendorProtocol, id: &str) -> RequestRefusal {
    match protocol {
        VendorProtocol::Messages => RequestRefusal::new(404, format!("File not found: {id}")),
        VendorProtocol::Google => RequestRefusal::new(
            403,
            format!("You do not have permission to access the File {id} or it may not exist."),
        ),
        _ => RequestRefusal::new(404, format!("No such File object: {id}")),
    }
}
