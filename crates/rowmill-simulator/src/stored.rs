//! The file APIs of the vendors: upload, get, delete.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::file_seen::{FileSeen, Sent, check};
use crate::form::Form;
use crate::outgoing::Outgoing;
use crate::protocol::{Protocol, Refused};
use crate::recorder::RequestSeen;
use crate::shared::Shared;

/// The beta header value of Anthropic's files.
pub(crate) const FILES_BETA: &str = "files-api-2025-04-14";

/// The files that clients have uploaded.
#[derive(Debug, Default)]
pub(crate) struct Stored(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    count: u64,
    files: HashMap<String, File>,
    /// Uploads that were started with Google's method: media type and name.
    begun: HashMap<String, (String, Option<String>)>,
}

#[derive(Debug, Clone)]
struct File {
    seen: FileSeen,
    /// How often it is still reported as being processed.
    processing: u32,
}

/// The operation of a file API that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door<'p> {
    Upload,
    /// The first and second step of Google's uploads.
    Begin,
    Finish(&'p str),
    File(&'p str),
}

impl Stored {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file that a call refers to.
    pub(crate) fn find(&self, id: &str) -> Option<FileSeen> {
        self.lock().files.get(id).filter(|file| file.processing == 0).map(|file| file.seen.clone())
    }

    /// Forgets all files, as if they had expired.
    pub(crate) fn clear(&self) {
        self.lock().files.clear();
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock().files.len() as u64
    }

    fn keep(&self, start: &str, seen: FileSeen, processing: u32) -> String {
        let mut held = self.lock();
        held.count += 1;
        let id = format!("{start}{:012}", held.count);
        held.files.insert(id.clone(), File { seen, processing });
        id
    }
}

impl Shared {
    /// The answer to a request of a file API; `None` if it is for something else.
    pub(crate) fn serve_file(&self, request: &RequestSeen) -> Option<Outgoing> {
        let (protocol, door) = door(request)?;
        let answered = protocol
            .check_headers(request, self.script.key.as_deref())
            .and_then(|()| self.file_answer(protocol, door, request));
        Some(match answered {
            Ok(outgoing) => outgoing,
            Err(refused) => Outgoing::json(refused.status, &refused.headers, &protocol.error(&refused)),
        })
    }

    fn file_answer(
        &self,
        protocol: Protocol,
        door: Door<'_>,
        request: &RequestSeen,
    ) -> Result<Outgoing, Refused> {
        let beta = request.header("anthropic-beta").unwrap_or_default();
        if protocol == Protocol::Messages && !beta.split(',').any(|one| one.trim() == FILES_BETA) {
            return Err(Refused::new(404, "Not found"));
        }
        match (door, request.method.as_str()) {
            (Door::File(id), "GET") => self.look(protocol, id, request),
            (Door::File(id), "DELETE") => {
                self.stored.lock().files.remove(id).ok_or_else(|| unknown(protocol, id))?;
                self.recorder.file_deleted();
                Ok(Outgoing::json(200, &[], &deleted(protocol, id)))
            }
            (Door::Upload | Door::Begin, "POST") if self.script.upload_status.is_some() => {
                Err(Refused::of_status(self.script.upload_status.unwrap_or_default()))
            }
            (Door::Upload, "POST") => self.upload(protocol, request),
            (Door::Begin, "POST") => self.begin(request),
            (Door::Finish(upload), "POST") => self.finish(upload, request),
            _ => Err(Refused::new(405, "the method is not allowed here")),
        }
    }

    fn upload(&self, protocol: Protocol, request: &RequestSeen) -> Result<Outgoing, Refused> {
        let form = Form::read(request)?;
        let Some(file) = &form.file else { return Err(Refused::invalid("'file' is a required property")) };
        if protocol != Protocol::Messages && form.field("purpose") != Some("user_data") {
            return Err(Refused::invalid("'purpose' must be user_data"));
        }
        check(&file.media_type, file.bytes)?;
        let seen = FileSeen::of(Some(&file.name), &file.media_type, file.bytes, Sent::Upload);
        let start = if protocol == Protocol::Messages { "file_" } else { "file-" };
        let id = self.stored.keep(start, seen.clone(), 0);
        self.recorder.file_uploaded();
        Ok(Outgoing::json(200, &[], &described(protocol, &id, &seen)))
    }

    fn begin(&self, request: &RequestSeen) -> Result<Outgoing, Refused> {
        let wanted = [("x-goog-upload-protocol", "resumable"), ("x-goog-upload-command", "start")];
        if wanted.iter().any(|(name, value)| request.header(name) != Some(*value)) {
            return Err(Refused::invalid("Invalid upload protocol or command."));
        }
        let Some(kind) = request.header("x-goog-upload-header-content-type") else {
            return Err(Refused::invalid("The content type of the file is missing."));
        };
        let name = request.json().pointer("/file/display_name").and_then(Value::as_str).map(str::to_owned);
        let mut held = self.stored.lock();
        held.count += 1;
        let upload = held.count.to_string();
        held.begun.insert(upload.clone(), (kind.to_owned(), name));
        let host = request.header("host").unwrap_or_default();
        let url = format!("http://{host}/upload/v1beta/files?upload_id={upload}&upload_protocol=resumable");
        Ok(Outgoing::json(200, &[("x-goog-upload-url".to_owned(), url)], &json!({})))
    }

    fn finish(&self, upload: &str, request: &RequestSeen) -> Result<Outgoing, Refused> {
        let is_whole = request.header("x-goog-upload-command") == Some("upload, finalize")
            && request.header("x-goog-upload-offset") == Some("0");
        let begun = self.stored.lock().begun.remove(upload).filter(|_| is_whole);
        let (kind, name) = begun.ok_or_else(|| Refused::invalid("There is no such upload."))?;
        check(&kind, &request.body)?;
        let seen = FileSeen::of(name.as_deref(), &kind, &request.body, Sent::Upload);
        let processing = self.script.file_processing;
        let id = self.stored.keep("f", seen.clone(), processing);
        self.recorder.file_uploaded();
        Ok(Outgoing::json(200, &[], &json!({"file": google(&id, &seen, processing, request)})))
    }

    fn look(&self, protocol: Protocol, id: &str, request: &RequestSeen) -> Result<Outgoing, Refused> {
        let mut held = self.stored.lock();
        let file = held.files.get_mut(id).ok_or_else(|| unknown(protocol, id))?;
        if protocol != Protocol::Google {
            return Ok(Outgoing::json(200, &[], &described(protocol, id, &file.seen)));
        }
        file.processing = file.processing.saturating_sub(1);
        Ok(Outgoing::json(200, &[], &google(id, &file.seen, file.processing, request)))
    }
}

/// The operation of a request, if it is for files.
fn door(request: &RequestSeen) -> Option<(Protocol, Door<'_>)> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    if path == "/upload/v1beta/files" {
        let upload = query.split('&').find_map(|part| part.strip_prefix("upload_id="));
        return Some((Protocol::Google, upload.map_or(Door::Begin, Door::Finish)));
    }
    if let Some(id) = path.strip_prefix("/v1beta/files/") {
        return Some((Protocol::Google, Door::File(id)));
    }
    let rest = path.strip_prefix("/v1/files")?;
    let is_anthropic = request.header("anthropic-version").is_some();
    let protocol = if is_anthropic { Protocol::Messages } else { Protocol::Responses };
    match rest.strip_prefix('/') {
        Some(id) => Some((protocol, Door::File(id))),
        None if rest.is_empty() => Some((protocol, Door::Upload)),
        None => None,
    }
}

fn described(protocol: Protocol, id: &str, seen: &FileSeen) -> Value {
    if protocol == Protocol::Messages {
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

fn google(id: &str, seen: &FileSeen, processing: u32, request: &RequestSeen) -> Value {
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

fn deleted(protocol: Protocol, id: &str) -> Value {
    match protocol {
        Protocol::Messages => json!({"id": id, "type": "file_deleted"}),
        Protocol::Google => json!({}),
        _ => json!({"id": id, "object": "file", "deleted": true}),
    }
}

/// A vendor's error for a file that it does not have.
pub(crate) fn unknown(protocol: Protocol, id: &str) -> Refused {
    match protocol {
        Protocol::Messages => Refused::new(404, format!("File not found: {id}")),
        Protocol::Google => Refused::new(
            403,
            format!("You do not have permission to access the File {id} or it may not exist."),
        ),
        _ => Refused::new(404, format!("No such File object: {id}")),
    }
}
