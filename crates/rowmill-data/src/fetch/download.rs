//! Downloads that survive interruptions: what has arrived is kept, the rest is requested, the complete file
//! verified.

use std::sync::Arc;

use rowmill_http::{Answer, Credential, HeaderMap, HttpFailure, Retrieval, Retrieved, Url, header};
use rowmill_types::{Problem, ProblemCode, grouped};

use super::ask::{Tries, is_passing, no_answer, put, wait_asked_for};
use super::bring::Fetcher;
use super::digest::{Expected, digest_of};
use super::entry::{Entry, Known};
use super::event::{FetchEvent, FetchStep};
use super::naming::name_of;
use super::partial::{Partial, Promise, text};

/// An attempt that transferred this many bytes is not a failure.
const MUCH: u64 = 1 << 20;

/// Progress is reported every so many bytes.
const TOLD_EVERY: u64 = 256 * 1024;

/// A file to download.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) url: Url,
    pub(crate) credential: Option<Credential>,
    /// Its name in messages.
    pub(crate) shown: &'a str,
    pub(crate) expected: Expected,
    /// Its file name, if it need not be taken from the address and the headers.
    pub(crate) name: Option<String>,
    /// The version that is already in the cache, and is used if it has not changed.
    pub(crate) kept: Option<&'a Known>,
}

/// The result of a download.
#[derive(Debug)]
pub(crate) enum Got {
    /// The cached version has not changed.
    Unchanged(Known),
    /// The file is complete and in the cache.
    Whole(Known),
    /// The server refuses to send it.
    Refused(Answer),
}

/// The result of one answer.
enum Taken {
    Whole,
    /// It ended early or could not be used: a retry may help.
    Cut(HttpFailure),
    Unchanged(Known),
    Refused(Answer),
    /// The server asks to retry, perhaps after a wait.
    Busy(Answer),
}

/// Downloads a file into its cache entry, with as many attempts as it takes while there is progress.
pub(crate) async fn download(
    fetcher: &Fetcher<'_>,
    entry: &Entry,
    wanted: Wanted<'_>,
) -> Result<Got, Problem> {
    let mut partial = Partial::open(entry, &wanted.expected).await?;
    let mut tries = Tries::new(fetcher, wanted.shown.into());
    // An earlier command may have been stopped between the last byte and the final step.
    while !(partial.done > 0 && partial.promise.total == Some(partial.done)) {
        let before = partial.done;
        let taken = match fetcher.http.retrieve(&request(&wanted, &partial)).await {
            Ok(found) => take(fetcher, &wanted, &mut partial, found).await?,
            Err(failure) => Taken::Cut(failure),
        };
        if partial.done >= before + MUCH {
            tries.brought_much();
        }
        match taken {
            Taken::Whole => break,
            Taken::Unchanged(known) => return Ok(Got::Unchanged(known)),
            Taken::Refused(answer) => return Ok(Got::Refused(answer)),
            Taken::Busy(answer) => {
                let reason = format!("status {}", answer.status());
                if !tries.again(wait_asked_for(answer.headers()), &reason).await {
                    return Ok(Got::Refused(answer));
                }
            }
            Taken::Cut(failure) => {
                if !tries.again(None, &failure.to_string()).await {
                    return Err(cut_off(&wanted, &partial, &failure));
                }
            }
        }
    }
    finish(fetcher, entry, &wanted, partial)
}

/// Requests the rest of a partial file, or all of it if it has changed.
fn request(wanted: &Wanted<'_>, partial: &Partial<'_>) -> Retrieval {
    let mut headers = HeaderMap::new();
    if partial.done > 0 {
        put(&mut headers, header::RANGE, &format!("bytes={}-", partial.done));
        if let Some(condition) = partial.promise.condition() {
            put(&mut headers, header::IF_RANGE, condition);
        }
    } else if let Some(kept) = wanted.kept {
        if let Some(tag) = &kept.etag {
            put(&mut headers, header::IF_NONE_MATCH, tag);
        } else if let Some(moment) = &kept.last_modified {
            put(&mut headers, header::IF_MODIFIED_SINCE, moment);
        }
    }
    Retrieval { headers, credential: wanted.credential.clone(), ..Retrieval::whole(wanted.url.clone()) }
}

async fn take(
    fetcher: &Fetcher<'_>,
    wanted: &Wanted<'_>,
    partial: &mut Partial<'_>,
    found: Retrieved,
) -> Result<Taken, Problem> {
    let headers = found.answer.headers();
    match found.answer.status() {
        200 => {
            partial.forget()?;
            let promise = promise(wanted, &partial.promise, headers);
            partial.promised(promise)?;
        }
        206 if goes_on(headers, partial) => {
            let range_total = content_range(headers).and_then(|(_, total)| total);
            partial.promise.total = partial.promise.total.or(range_total);
        }
        206 | 416 => {
            partial.forget()?;
            return Ok(Taken::Cut(HttpFailure::Broken(
                "the rest does not match the part that was downloaded before".into(),
            )));
        }
        status => {
            return Ok(match wanted.kept {
                Some(known) if status == 304 => Taken::Unchanged(known.clone()),
                _ if is_passing(status) => Taken::Busy(found.answer),
                _ => Taken::Refused(found.answer),
            });
        }
    }
    receive(fetcher, wanted, partial, found.answer).await
}

/// Writes the body until it ends.
async fn receive(
    fetcher: &Fetcher<'_>,
    wanted: &Wanted<'_>,
    partial: &mut Partial<'_>,
    mut answer: Answer,
) -> Result<Taken, Problem> {
    let name: Arc<str> = wanted.shown.into();
    let total = partial.promise.total;
    let tell = |step| (fetcher.told)(FetchEvent { name: Arc::clone(&name), step });
    tell(FetchStep::Started { done: partial.done, total });
    let mut told = partial.done;
    loop {
        match answer.chunk().await {
            Err(failure) => return Ok(Taken::Cut(failure)),
            Ok(None) => break,
            Ok(Some(bytes)) => partial.append(&bytes)?,
        }
        if total.is_some_and(|total| partial.done > total) {
            break;
        }
        if partial.done >= told + TOLD_EVERY {
            told = partial.done;
            tell(FetchStep::Progress { done: told, total });
        }
    }
    match total {
        Some(total) if partial.done < total => {
            Ok(Taken::Cut(HttpFailure::Broken("the connection ended before the end of the file".into())))
        }
        _ => Ok(Taken::Whole),
    }
}

/// What an answer with a complete file says about it.
fn promise(wanted: &Wanted<'_>, begun: &Promise, headers: &HeaderMap) -> Promise {
    let length = text(headers, &header::CONTENT_LENGTH).and_then(|text| text.parse().ok());
    let name = wanted.name.clone().unwrap_or_else(|| name_of(&wanted.url, headers));
    let mut promise = Promise { name, total: wanted.expected.size.or(length), ..begun.clone() };
    promise.take_tags(headers);
    promise
}

/// Whether a partial answer begins where the downloaded part ends, in the same version of the file.
fn goes_on(headers: &HeaderMap, partial: &Partial<'_>) -> bool {
    let Some((start, total)) = content_range(headers) else { return false };
    let is_same_size = match (total, partial.promise.total) {
        (Some(now), Some(before)) => now == before,
        _ => true,
    };
    let is_same_tag = match (text(headers, &header::ETAG), &partial.promise.etag) {
        (Some(now), Some(before)) => now == *before,
        _ => true,
    };
    start == partial.done && is_same_size && is_same_tag
}

/// Parses start and total of `bytes 5-9/10`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = text(headers, &header::CONTENT_RANGE)?;
    let (range, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

/// Verifies a complete file and moves it into the cache.
fn finish(
    fetcher: &Fetcher<'_>,
    entry: &Entry,
    wanted: &Wanted<'_>,
    partial: Partial<'_>,
) -> Result<Got, Problem> {
    let digest = partial.finish()?;
    let Promise { etag, last_modified, name, total, .. } = partial.promise.clone();
    let size = partial.done;
    if let Some(total) = total.filter(|total| *total != size) {
        partial.discard();
        return Err(damaged(
            wanted,
            format!("received {} bytes, expected {}", grouped(size), grouped(total)),
        ));
    }
    if let Some(expected) = wanted.expected.digest.as_ref().filter(|expected| **expected != digest) {
        partial.discard();
        return Err(damaged(wanted, format!("its digest is `{digest}`, expected `{expected}`")));
    }
    let version = version_name(&digest.to_string());
    let known = Known { version, name, size, digest, etag, last_modified };
    entry.keep(partial.path(), &known)?;
    partial.discard();
    let step = FetchStep::Finished { bytes: size };
    (fetcher.told)(FetchEvent { name: wanted.shown.into(), step });
    Ok(Got::Whole(known))
}

/// The name of the folder for a version with this identity.
pub(crate) fn version_name(identity: &str) -> String {
    digest_of(identity).chars().take(16).collect()
}

fn cut_off(wanted: &Wanted<'_>, partial: &Partial<'_>, failure: &HttpFailure) -> Problem {
    if partial.done == 0 {
        return no_answer(&wanted.url, wanted.shown, failure);
    }
    let of = partial.promise.total.map(|total| format!(" of {}", grouped(total))).unwrap_or_default();
    let message = format!(
        "the download of `{}` was interrupted after {}{of} bytes",
        wanted.shown,
        grouped(partial.done)
    );
    let hint = if partial.promise.can_go_on() {
        "run the same command again: it continues from there"
    } else {
        "run the same command again; the server does not identify versions, so the download starts over"
    };
    Problem::new(ProblemCode::FetchFailed, message).cause(failure).hint(hint)
}

fn damaged(wanted: &Wanted<'_>, what: String) -> Problem {
    let message = format!("`{}` is not what the server announced: {what}", wanted.shown);
    Problem::new(ProblemCode::FetchFailed, message).hint(
        "the download was discarded: run the same command again; if this persists, the server is at fault",
    )
}
