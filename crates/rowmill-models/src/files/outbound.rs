//! The files of a request before it is sent: checked, and uploaded if that is better.

use std::collections::HashSet;

use rowmill_http::HttpClient;
use rowmill_types::{Attachment, CallError, CallFailure, Message};

use super::cache::UploadedFiles;
use super::forms::FileForm;
use super::message_parts::MessageShape;
use super::rules::{AcceptedFiles, FileStorage};
use super::stores::UploadAddress;
use super::uploads::Uploads;
use crate::call_error::CallErrorReporter;
use crate::connection::ProviderConnection;

/// Larger files are uploaded once instead of being sent with every attempt.
const LARGE: usize = 8 << 20;

/// Words in providers' errors about a file that they do not have, or no longer.
const LOST_WORDS: [&str; 6] =
    ["not found", "not exist", "no such", "expired", "been deleted", "is not available"];

/// Whether any message has files.
pub(crate) fn have_files(messages: &[Message]) -> bool {
    messages.iter().any(|message| !message.attachments.is_empty())
}

/// How a model sends files.
#[derive(Debug)]
pub(crate) struct FileSender {
    pub(crate) taken: &'static AcceptedFiles,
    pub(crate) shape: MessageShape,
    /// The provider's file API, if it has one.
    pub(crate) uploads: Option<Uploads>,
}

impl FileSender {
    pub(crate) fn new(
        connection: &ProviderConnection,
        http: &HttpClient,
        shape: MessageShape,
        place: UploadAddress,
    ) -> Self {
        let taken = connection.quirks.files;
        let reporter = CallErrorReporter::new(connection, &place.upload);
        let uploads =
            (taken.storage != FileStorage::None).then(|| Uploads::new(http, taken.storage, place, reporter));
        Self { taken, shape, uploads }
    }

    /// Checks the files of a request and uploads those that are not sent inline.
    pub(crate) async fn prepare(&self, messages: &[Message]) -> Result<UploadedFiles, CallError> {
        let files: Vec<&Attachment> = messages.iter().flat_map(|message| &message.attachments).collect();
        check_files(self.taken, &files)?;
        let mut uploaded = UploadedFiles::default();
        if let Some(uploads) = &self.uploads {
            for file in self.to_upload(&files) {
                let Some(entry) = uploads.upload_once(file).await? else { break };
                uploaded.entries.push(entry);
            }
            uploaded.header = uploads.header().filter(|_| !uploaded.entries.is_empty());
        }
        let inline = files.iter().filter(|file| uploaded.reference(file).is_none());
        let inline: u64 = inline.map(|file| encoded(file)).sum();
        if inline > self.taken.inline {
            let most = self.taken.inline;
            return Err(refused(format!(
                "the files of the request have {inline} bytes as sent, but the provider accepts at most \
                 {most}"
            )));
        }
        Ok(uploaded)
    }

    /// Large files, and if the others are still too much for one request, the largest of them.
    pub(super) fn to_upload<'a>(&self, files: &[&'a Attachment]) -> Vec<&'a Attachment> {
        let can = |file: &&Attachment| self.shape.refers_to(FileForm::from_media_type(&file.media_type));
        let (mut wanted, mut rest): (Vec<&Attachment>, Vec<&Attachment>) =
            files.iter().partition(|file| can(file) && file.bytes.len() > LARGE);
        rest.sort_by_key(|file| std::cmp::Reverse(file.bytes.len()));
        let mut inline: u64 = rest.iter().map(|file| encoded(file)).sum();
        for file in rest.into_iter().filter(can) {
            if inline <= self.taken.inline {
                break;
            }
            inline -= encoded(file);
            wanted.push(file);
        }
        let mut seen = HashSet::new();
        wanted.retain(|file| seen.insert((file.digest.as_str(), file.media_type.as_str())));
        wanted
    }

    /// Classifies a failed call with files: a file that the provider has lost is uploaded again on the next
    /// attempt.
    pub(crate) fn explain_error(&self, error: CallError, uploaded: &UploadedFiles) -> CallError {
        if error.status == Some(413) {
            let message = format!(
                "the request with its files is too large for the provider: {}",
                error.message.with_mention_markers()
            );
            return CallError { failure: CallFailure::Refused, message: message.into(), ..error };
        }
        let words = error.message.to_lowercase();
        let is_lost = matches!(error.status, Some(400 | 403 | 404))
            && words.contains("file")
            && LOST_WORDS.iter().any(|lost| words.contains(lost));
        let Some(uploads) = self.uploads.as_ref().filter(|_| is_lost && !uploaded.entries.is_empty()) else {
            return error;
        };
        let named: Vec<_> = uploaded.entries.iter().filter(|entry| names(&error.message, entry)).collect();
        let lost = if named.is_empty() { uploaded.entries.iter().collect() } else { named };
        for entry in lost {
            uploads.forget(entry);
        }
        let message = format!(
            "the provider no longer has the file that was uploaded: {}",
            error.message.with_mention_markers()
        );
        CallError { failure: CallFailure::Server, message: message.into(), ..error }
    }

    /// Deletes the uploaded files.
    pub(crate) async fn close(&self) {
        if let Some(uploads) = &self.uploads {
            uploads.delete_all().await;
        }
    }
}

/// Checks them again: a fallback model may accept other files than the model that they were loaded for.
fn check_files(taken: &AcceptedFiles, files: &[&Attachment]) -> Result<(), CallError> {
    if files.len() > taken.count {
        let (files, most) = (files.len(), taken.count);
        return Err(refused(format!(
            "the request has {files} files, but the provider accepts at most {most}"
        )));
    }
    for file in files {
        let (name, media_type) = (&file.name, &file.media_type);
        let Some(group) = taken.group(media_type) else {
            return Err(refused(format!("`{name}` is `{media_type}`, which the model does not accept")));
        };
        if file.bytes.len() as u64 > group.max_bytes {
            let (bytes, most) = (file.bytes.len(), group.max_bytes);
            return Err(refused(format!(
                "`{name}` has {bytes} bytes, but the provider accepts at most {most}"
            )));
        }
        if FileForm::from_media_type(media_type) == FileForm::Text && file.text().is_none() {
            return Err(refused(format!("`{name}` is declared as text but is not UTF-8")));
        }
    }
    Ok(())
}

/// Checks the files of a request that has to contain them all.
pub(crate) fn check_inline_files(taken: &AcceptedFiles, messages: &[Message]) -> Result<(), CallError> {
    if !have_files(messages) {
        return Ok(());
    }
    let files: Vec<&Attachment> = messages.iter().flat_map(|message| &message.attachments).collect();
    check_files(taken, &files)?;
    let (bytes, most) = (files.iter().map(|file| encoded(file)).sum::<u64>(), taken.inline);
    if bytes > most {
        return Err(refused(format!(
            "the files of the request have {bytes} bytes as sent, but a request in a batch takes at most {most}; only \
             live calls can upload larger ones"
        )));
    }
    Ok(())
}

fn names(message: &str, entry: &super::cache::UploadCacheEntry) -> bool {
    entry.remote.get().is_some_and(|remote| message.contains(&remote.id))
}

/// The size of a file in the body of a request.
fn encoded(file: &Attachment) -> u64 {
    let bytes = file.bytes.len() as u64;
    if FileForm::from_media_type(&file.media_type) == FileForm::Text { bytes } else { bytes.div_ceil(3) * 4 }
}

fn refused(message: String) -> CallError {
    CallError::new(CallFailure::Refused, message)
}
