//! Requests for the files of batches.

use std::fs::OpenOptions;
use std::sync::Arc;

use serde_json::{Value, json};

use super::download::{BatchAnswer, BatchDownload, DownloadDamage};
use super::form_file::FormOnDisk;
use super::lists::{Listed, page};
use super::serve::{BatchCall, document};
use super::store::{BatchFile, disk_failure};
use super::stored_bytes::StoredBytes;
use super::vendor::{BatchVendor, IdKind};
use super::{gemini, openai};
use crate::outgoing_answer::OutgoingAnswer;
use crate::protocol::RequestRefusal;
use crate::recorder::RecordedRequest;
use crate::simulator_state::SimulatorState;
use crate::stored_uploads::unknown_file_refusal;
use crate::upload_form::UploadForm;

/// A file that is about to be kept.
struct NewFile {
    id: String,
    vendor: BatchVendor,
    name: String,
}

impl SimulatorState {
    /// Whether a form is an upload for a batch.
    pub(super) fn is_batch_upload(&self, call: &BatchCall<'_>) -> bool {
        let kind = call.request.header("content-type").unwrap_or_default();
        let purpose = match &call.body {
            Some(body) => {
                FormOnDisk::read(body, kind).ok().and_then(|form| form.field("purpose").map(str::to_owned))
            }
            None => {
                UploadForm::read(call.request).ok().and_then(|form| form.field("purpose").map(str::to_owned))
            }
        };
        match purpose.as_deref() {
            Some("batch" | "batch-api") => true,
            _ => call.route.vendor != BatchVendor::OpenAi,
        }
    }

    /// Whether one of Google's uploads is a file for a batch.
    pub(super) fn is_batch_piece(&self, upload: &str) -> bool {
        self.stored.begun(upload).is_some_and(|(kind, _)| kind.contains("jsonl"))
    }

    pub(super) fn upload_batch_file(&self, call: BatchCall<'_>) -> Result<BatchAnswer, RequestRefusal> {
        if let Some(status) = self.script.upload_status {
            return Err(RequestRefusal::from_status(status));
        }
        let vendor = call.route.vendor;
        let kind = call.request.header("content-type").unwrap_or_default();
        let bytes = match call.body {
            Some(body) => body,
            None => self.batches.write(&call.request.body).map_err(disk_failure)?,
        };
        let form = FormOnDisk::read(&bytes, kind)?;
        if form.field("purpose") != Some(vendor.purpose()) {
            let message = format!("'purpose' must be {}", vendor.purpose());
            return Err(RequestRefusal::invalid(message));
        }
        let named = form.field("file_name").map(str::to_owned);
        let Some((name, start, length)) = form.file else {
            return match named {
                Some(name) if vendor == BatchVendor::Together => Ok(self.await_file(call.request, name)),
                _ => Err(RequestRefusal::invalid("'file' is a required property")),
            };
        };
        let id = self.batches.lock().new_id(vendor, IdKind::File, self.script.seed);
        let new = NewFile { id, vendor, name: named.unwrap_or(name) };
        let file = self.keep_upload(new, bytes.part(start, length))?;
        let created = self.batches.lock().clock.unix(file.created);
        Ok(document(&openai::file(&file, created)))
    }

    /// The first step of the uploads of Together's own client: the address for the bytes.
    fn await_file(&self, request: &RecordedRequest, name: String) -> BatchAnswer {
        let mut held = self.batches.lock();
        let id = held.new_id(BatchVendor::Together, IdKind::File, self.script.seed);
        held.awaited.insert(id.clone(), name);
        let host = request.header("host").unwrap_or_default();
        let headers = [
            ("location".to_owned(), format!("http://{host}/together/v1/files/{id}/bytes")),
            ("x-together-file-id".to_owned(), id),
        ];
        BatchAnswer::Document(OutgoingAnswer::json(302, &headers, &json!({})))
    }

    /// The second step: the bytes. The address needs no key.
    pub(super) fn put_file(&self, call: BatchCall<'_>, id: &str) -> Result<BatchAnswer, RequestRefusal> {
        let vendor = call.route.vendor;
        let name = self.batches.lock().awaited.get(id).cloned();
        let name = name.ok_or_else(|| unknown_file_refusal(vendor.protocol(), id))?;
        let bytes = match call.body {
            Some(body) => body,
            None => self.batches.write(&call.request.body).map_err(disk_failure)?,
        };
        self.keep_upload(NewFile { id: id.to_owned(), vendor, name }, bytes)?;
        self.batches.lock().awaited.remove(id);
        Ok(document(&json!({})))
    }

    fn keep_upload(&self, new: NewFile, bytes: StoredBytes) -> Result<BatchFile, RequestRefusal> {
        let NewFile { id, vendor, name } = new;
        let most = self.script.batches.max_bytes.unwrap_or(vendor.limits().bytes);
        if bytes.length() > most {
            let message = format!("The file is too large: the maximum size is {most} bytes.");
            return Err(RequestRefusal::new(413, message));
        }
        let length = bytes.length();
        let mut held = self.batches.lock();
        let file = BatchFile {
            id,
            vendor,
            name,
            media_type: "application/jsonl".to_owned(),
            is_result: false,
            created: held.now(),
            bytes: Arc::new(bytes),
        };
        held.files.push(file.clone());
        drop(held);
        self.recorder.count_batches(|counts| {
            counts.uploads += 1;
            counts.uploaded_bytes += length;
        });
        Ok(file)
    }

    /// Takes a piece of one of Google's uploads; the last one makes the file.
    pub(super) fn upload_piece(
        &self,
        call: BatchCall<'_>,
        upload: &str,
    ) -> Result<BatchAnswer, RequestRefusal> {
        let header = |name| call.request.header(name).unwrap_or_default();
        let command = header("x-goog-upload-command");
        let bytes = match call.body {
            Some(body) => body,
            None => self.batches.write(&call.request.body).map_err(disk_failure)?,
        };
        let mut held = self.batches.lock();
        let pieces = held.pieces.entry(upload.to_owned()).or_default();
        let received: u64 = pieces.iter().map(StoredBytes::length).sum();
        if !command.starts_with("upload") || header("x-goog-upload-offset").parse() != Ok(received) {
            return Err(RequestRefusal::invalid("There is no such upload."));
        }
        pieces.push(bytes);
        if !command.contains("finalize") {
            let status = [("x-goog-upload-status".to_owned(), "active".to_owned())];
            return Ok(BatchAnswer::Document(OutgoingAnswer::json(200, &status, &json!({}))));
        }
        let pieces = held.pieces.remove(upload).unwrap_or_default();
        drop(held);
        let (kind, name) = self.stored.take_begun(upload).unwrap_or_default();
        let bytes = self.join(pieces).map_err(disk_failure)?;
        let vendor = BatchVendor::Gemini;
        let id = self.batches.lock().new_id(vendor, IdKind::File, self.script.seed);
        let new = NewFile { id, vendor, name: name.unwrap_or_default() };
        let mut file = self.keep_upload(new, bytes)?;
        file.media_type = kind;
        let created = self.batches.lock().clock.text(file.created);
        let host = call.request.header("host").unwrap_or_default();
        let body = json!({"file": gemini::file(&file, &created, host)});
        let status = [("x-goog-upload-status".to_owned(), "final".to_owned())];
        Ok(BatchAnswer::Document(OutgoingAnswer::json(200, &status, &body)))
    }

    fn join(&self, pieces: Vec<StoredBytes>) -> std::io::Result<StoredBytes> {
        let path = self.batches.new_path()?;
        let mut file = OpenOptions::new().create_new(true).append(true).open(&path)?;
        for piece in pieces {
            std::io::copy(&mut piece.open()?, &mut file)?;
        }
        StoredBytes::whole(path)
    }

    fn found(&self, call: &BatchCall<'_>, id: &str) -> Result<BatchFile, RequestRefusal> {
        let found = self.batches.lock().file(id).cloned();
        found.ok_or_else(|| unknown_file_refusal(call.route.vendor.protocol(), id))
    }

    fn shape(&self, call: &BatchCall<'_>, file: &BatchFile) -> Value {
        let held = self.batches.lock();
        match file.vendor {
            BatchVendor::Gemini => gemini::file(file, &held.clock.text(file.created), call.host()),
            _ => openai::file(file, held.clock.unix(file.created)),
        }
    }

    pub(super) fn batch_file(&self, call: &BatchCall<'_>, id: &str) -> Result<BatchAnswer, RequestRefusal> {
        let file = self.found(call, id)?;
        Ok(document(&self.shape(call, &file)))
    }

    pub(super) fn list_files(&self, call: &BatchCall<'_>) -> Result<BatchAnswer, RequestRefusal> {
        let vendor = call.route.vendor;
        let files: Vec<BatchFile> = self.batches.lock().files.iter().rev().cloned().collect();
        let of_vendor = files.iter().filter(|file| file.vendor == vendor);
        let entries = of_vendor.map(|file| (file.id.clone(), self.shape(call, file)));
        let wanted = call.route.parameter("purpose");
        let entries =
            entries.filter(|(_, file)| wanted.is_none_or(|wanted| file["purpose"].as_str() == Some(wanted)));
        Ok(document(&page(&call.route, Listed::Files, entries.collect())?))
    }

    pub(super) fn delete_batch_file(
        &self,
        call: &BatchCall<'_>,
        id: &str,
    ) -> Result<BatchAnswer, RequestRefusal> {
        self.found(call, id)?;
        self.batches.lock().files.retain(|file| file.id != id);
        self.recorder.count_batches(|counts| counts.deleted_files += 1);
        Ok(document(&match call.route.vendor {
            BatchVendor::Gemini => json!({}),
            _ => json!({"id": id, "object": "file", "deleted": true}),
        }))
    }

    pub(super) fn download_file(
        &self,
        call: &BatchCall<'_>,
        id: &str,
    ) -> Result<BatchAnswer, RequestRefusal> {
        let file = self.found(call, id)?;
        if call.route.vendor == BatchVendor::Gemini && !file.is_result {
            return Err(RequestRefusal::invalid("Only generated files can be downloaded."));
        }
        let damage = if file.is_result { self.next_download() } else { DownloadDamage::None };
        Ok(BatchAnswer::File(BatchDownload { bytes: file.bytes, damage }))
    }

    /// Counts a download of results; returns what is done to it.
    pub(super) fn next_download(&self) -> DownloadDamage {
        let mut held = self.batches.lock();
        held.downloads += 1;
        let number = held.downloads;
        drop(held);
        self.recorder.count_batches(|counts| counts.result_downloads += 1);
        let (cut, slow) = (self.script.batches.cut_first_downloads, self.script.batches.slow_first_downloads);
        match number {
            number if number <= cut => DownloadDamage::Cut,
            number if number <= cut.saturating_add(slow) => DownloadDamage::Slow,
            _ => DownloadDamage::None,
        }
    }

    /// Counts an upload; returns whether it is cut.
    pub(crate) fn cuts_next_upload(&self) -> bool {
        let cut = self.script.batches.cut_first_uploads;
        if cut == 0 {
            return false;
        }
        let mut held = self.batches.lock();
        held.uploads += 1;
        held.uploads <= cut
    }
}
