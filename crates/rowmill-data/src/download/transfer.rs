//! Downloads that survive interruptions: what has arrived is kept, the rest is requested, the complete file
//! verified.

use std::sync::Arc;

use rowmill_http::{
    HeaderMap, HttpAnswer, HttpDocumentRequest, HttpDocumentResponse, HttpFailure, OriginCredential, Url,
    header,
};
use rowmill_types::{Problem, ProblemCode, group_digits};

use super::digest::{ExpectedFile, sha256_hex};
use super::download_entry::{CachedVersion, DownloadEntry};
use super::file_name::file_name_for;
use super::partial::{PartialDownload, PartialInfo, header_text};
use super::request::{FetchAttempts, insert_header, is_transient, no_answer_problem, requested_wait};
use crate::fetch::{FetchEvent, FetchEventKind, Fetcher};

/// An attempt that transferred this many bytes is not a failure.
const MUCH: u64 = 1 << 20;

/// Progress is reported every so many bytes.
const PROGRESS_BYTES: u64 = 256 * 1024;

/// A file to download.
#[derive(Debug)]
pub(crate) struct DownloadRequest<'a> {
    pub(crate) url: Url,
    pub(crate) credential: Option<OriginCredential>,
    /// Its name in messages.
    pub(crate) shown: &'a str,
    pub(crate) expected: ExpectedFile,
    /// Its file name, if it need not be taken from the address and the headers.
    pub(crate) name: Option<String>,
    /// The version that is already in the cache, and is used if it has not changed.
    pub(crate) kept: Option<&'a CachedVersion>,
}

/// The result of a download.
#[derive(Debug)]
pub(crate) enum DownloadOutcome {
    /// The cached version has not changed.
    Unchanged(CachedVersion),
    /// The file is complete and in the cache.
    Whole(CachedVersion),
    /// The server refuses to send it.
    Refused(HttpAnswer),
}

/// The result of one answer.
enum DownloadAttempt {
    Whole,
    /// It ended early or could not be used: a retry may help.
    Cut(HttpFailure),
    Unchanged(CachedVersion),
    Refused(HttpAnswer),
    /// The server asks to retry, perhaps after a wait.
    Busy(HttpAnswer),
}

/// Downloads a file into its cache entry, with as many attempts as it takes while there is progress.
pub(crate) async fn download(
    fetcher: &Fetcher<'_>,
    entry: &DownloadEntry,
    wanted: DownloadRequest<'_>,
) -> Result<DownloadOutcome, Problem> {
    let mut partial = PartialDownload::open(entry, &wanted.expected).await?;
    let mut tries = FetchAttempts::new(fetcher, wanted.shown.into());
    // An earlier command may have been stopped between the last byte and the final step.
    while !(partial.done > 0 && partial.promise.total == Some(partial.done)) {
        let before = partial.done;
        let taken = match fetcher.http.retrieve(&request(&wanted, &partial)).await {
            Ok(found) => take(fetcher, &wanted, &mut partial, found).await?,
            Err(failure) => DownloadAttempt::Cut(failure),
        };
        if partial.done >= before + MUCH {
            tries.reset_failures();
        }
        match taken {
            DownloadAttempt::Whole => break,
            DownloadAttempt::Unchanged(known) => return Ok(DownloadOutcome::Unchanged(known)),
            DownloadAttempt::Refused(answer) => return Ok(DownloadOutcome::Refused(answer)),
            DownloadAttempt::Busy(answer) => {
                let reason = format!("status {}", answer.status());
                if !tries.wait_for_retry(requested_wait(answer.headers()), &reason).await {
                    return Ok(DownloadOutcome::Refused(answer));
                }
            }
            DownloadAttempt::Cut(failure) => {
                if !tries.wait_for_retry(None, &failure.to_string()).await {
                    return Err(cut_off(&wanted, &partial, &failure));
                }
            }
        }
    }
    finish(fetcher, entry, &wanted, partial)
}

/// Requests the rest of a partial file, or all of it if it has changed.
fn request(wanted: &DownloadRequest<'_>, partial: &PartialDownload<'_>) -> HttpDocumentRequest {
    let mut headers = HeaderMap::new();
    if partial.done > 0 {
        insert_header(&mut headers, header::RANGE, &format!("bytes={}-", partial.done));
        if let Some(condition) = partial.promise.condition() {
            insert_header(&mut headers, header::IF_RANGE, condition);
        }
    } else if let Some(kept) = wanted.kept {
        if let Some(tag) = &kept.etag {
            insert_header(&mut headers, header::IF_NONE_MATCH, tag);
        } else if let Some(moment) = &kept.last_modified {
            insert_header(&mut headers, header::IF_MODIFIED_SINCE, moment);
        }
    }
    HttpDocumentRequest {
        headers,
        credential: wanted.credential.clone(),
        ..HttpDocumentRequest::whole_document(wanted.url.clone())
    }
}

async fn take(
    fetcher: &Fetcher<'_>,
    wanted: &DownloadRequest<'_>,
    partial: &mut PartialDownload<'_>,
    found: HttpDocumentResponse,
) -> Result<DownloadAttempt, Problem> {
    let headers = found.answer.headers();
    match found.answer.status() {
        200 => {
            partial.forget()?;
            let promise = promise(wanted, &partial.promise, headers);
            partial.record_info(promise)?;
        }
        206 if goes_on(headers, partial) => {
            let range_total = content_range(headers).and_then(|(_, total)| total);
            partial.promise.total = partial.promise.total.or(range_total);
        }
        206 | 416 => {
            partial.forget()?;
            return Ok(DownloadAttempt::Cut(HttpFailure::Broken(
                "the rest does not match the part that was downloaded before".into(),
            )));
        }
        status => {
            return Ok(match wanted.kept {
                Some(known) if status == 304 => DownloadAttempt::Unchanged(known.clone()),
                _ if is_transient(status) => DownloadAttempt::Busy(found.answer),
                _ => DownloadAttempt::Refused(found.answer),
            });
        }
    }
    receive(fetcher, wanted, partial, found.answer).await
}

/// Writes the body until it ends.
async fn receive(
    fetcher: &Fetcher<'_>,
    wanted: &DownloadRequest<'_>,
    partial: &mut PartialDownload<'_>,
    mut answer: HttpAnswer,
) -> Result<DownloadAttempt, Problem> {
    let name: Arc<str> = wanted.shown.into();
    let total = partial.promise.total;
    let tell = |step| (fetcher.on_event)(FetchEvent { name: Arc::clone(&name), step });
    tell(FetchEventKind::Started { done: partial.done, total });
    let mut reported = partial.done;
    loop {
        match answer.chunk().await {
            Err(failure) => return Ok(DownloadAttempt::Cut(failure)),
            Ok(None) => break,
            Ok(Some(bytes)) => partial.append(&bytes)?,
        }
        if total.is_some_and(|total| partial.done > total) {
            break;
        }
        if partial.done >= reported + PROGRESS_BYTES {
            reported = partial.done;
            tell(FetchEventKind::Progress { done: reported, total });
        }
    }
    match total {
        Some(total) if partial.done < total => Ok(DownloadAttempt::Cut(HttpFailure::Broken(
            "the connection ended before the end of the file".into(),
        ))),
        _ => Ok(DownloadAttempt::Whole),
    }
}

/// What an answer with a complete file says about it.
fn promise(wanted: &DownloadRequest<'_>, begun: &PartialInfo, headers: &HeaderMap) -> PartialInfo {
    let length = header_text(headers, &header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
    let name = wanted.name.clone().unwrap_or_else(|| file_name_for(&wanted.url, headers));
    let mut promise = PartialInfo { name, total: wanted.expected.size.or(length), ..begun.clone() };
    promise.take_tags(headers);
    promise
}

/// Whether a partial answer begins where the downloaded part ends, in the same version of the file.
fn goes_on(headers: &HeaderMap, partial: &PartialDownload<'_>) -> bool {
    let Some((start, total)) = content_range(headers) else { return false };
    let is_same_size = match (total, partial.promise.total) {
        (Some(now), Some(before)) => now == before,
        _ => true,
    };
    let is_same_tag = match (header_text(headers, &header::ETAG), &partial.promise.etag) {
        (Some(now), Some(before)) => now == *before,
        _ => true,
    };
    start == partial.done && is_same_size && is_same_tag
}

/// Parses start and total of `bytes 5-9/10`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = header_text(headers, &header::CONTENT_RANGE)?;
    let (range, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

/// Verifies a complete file and moves it into the cache.
fn finish(
    fetcher: &Fetcher<'_>,
    entry: &DownloadEntry,
    wanted: &DownloadRequest<'_>,
    partial: PartialDownload<'_>,
) -> Result<DownloadOutcome, Problem> {
    let digest = partial.finish()?;
    let PartialInfo { etag, last_modified, name, total, .. } = partial.promise.clone();
    let size = partial.done;
    if let Some(total) = total.filter(|total| *total != size) {
        partial.discard();
        return Err(damaged(
            wanted,
            format!("received {} bytes, expected {}", group_digits(size), group_digits(total)),
        ));
    }
    if let Some(expected) = wanted.expected.digest.as_ref().filter(|expected| **expected != digest) {
        partial.discard();
        return Err(damaged(wanted, format!("its digest is `{digest}`, expected `{expected}`")));
    }
    let version = version_folder_name(&digest.to_string());
    let known = CachedVersion { version, name, size, digest, etag, last_modified };
    entry.install(partial.path(), &known)?;
    partial.discard();
    let step = FetchEventKind::Finished { bytes: size };
    (fetcher.on_event)(FetchEvent { name: wanted.shown.into(), step });
    Ok(DownloadOutcome::Whole(known))
}

/// The name of the folder for a version with this identity.
pub(crate) fn version_folder_name(identity: &str) -> String {
    sha256_hex(identity).chars().take(16).collect()
}

fn cut_off(wanted: &DownloadRequest<'_>, partial: &PartialDownload<'_>, failure: &HttpFailure) -> Problem {
    if partial.done == 0 {
        return no_answer_problem(&wanted.url, wanted.shown, failure);
    }
    let of = partial.promise.total.map(|total| format!(" of {}", group_digits(total))).unwrap_or_default();
    let message = format!(
        "the download of `{}` was interrupted after {}{of} bytes",
        wanted.shown,
        group_digits(partial.done)
    );
    let hint = if partial.promise.can_continue() {
        "run the same command again: it continues from there"
    } else {
        "run the same command again; the server does not identify versions, so the download starts over"
    };
    Problem::new(ProblemCode::FetchFailed, message).cause(failure).hint(hint)
}

fn damaged(wanted: &DownloadRequest<'_>, what: String) -> Problem {
    let message = format!("`{}` is not what the server announced: {what}", wanted.shown);
    Problem::new(ProblemCode::FetchFailed, message).hint(
        "the download was discarded: run the same command again; if this persists, the server is at fault",
    )
}
