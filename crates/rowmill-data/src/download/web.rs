//! Files at plain web addresses.

use std::path::PathBuf;

use rowmill_http::{HttpAnswer, Url};
use rowmill_types::{Problem, ProblemCode};

use super::digest::ExpectedFile;
use super::download_entry::{CachedVersion, DownloadEntry};
use super::request::refusal_text;
use super::transfer::{DownloadOutcome, DownloadRequest, download};
use crate::address_credential::split_credential;
use crate::fetch::{FetchEventKind, Fetcher};
use crate::{FileList, InputFile};

/// Fetches the file at an address, unless the cached one has not changed.
pub(crate) async fn fetch_web_file(fetcher: &Fetcher<'_>, url: &Url) -> Result<FileList, Problem> {
    let shown = crate::redacted_source(url.as_str());
    let (clean, credential) = split_credential(url);
    let waits = || fetcher.emit(&shown, FetchEventKind::waiting_for_process());
    // The key is the whole address, so that a file behind one password is not returned for another.
    let entry = DownloadEntry::open(&fetcher.settings.downloads()?, url.as_str(), &waits).await?;
    let kept =
        entry.version_at_revision("").filter(|known| known.etag.is_some() || known.last_modified.is_some());
    let wanted = DownloadRequest {
        url: clean,
        credential,
        shown: &shown,
        expected: ExpectedFile::default(),
        name: None,
        kept: kept.as_ref(),
    };
    let known = match download(fetcher, &entry, wanted).await? {
        DownloadOutcome::Whole(known) => known,
        DownloadOutcome::Unchanged(known) => {
            fetcher.emit(&shown, FetchEventKind::AlreadyCached { bytes: known.size });
            known
        }
        DownloadOutcome::Refused(answer) => return Err(refused(&shown, answer).await),
    };
    entry.record_version(&[""], &known)?;
    Ok(list(shown, entry.path(&known), known))
}

fn list(shown: String, path: PathBuf, known: CachedVersion) -> FileList {
    let identity = Some(known.digest.to_string());
    FileList { name: shown, files: vec![InputFile::new(path, known.name)], identity }
}

async fn refused(shown: &str, answer: HttpAnswer) -> Problem {
    let status = answer.status();
    let (code, hint) = match status {
        404 | 410 => (ProblemCode::InputNotFound, "check the URL"),
        401 | 403 => (ProblemCode::FetchFailed, "check that the URL opens without signing in, or use a file"),
        429 => (ProblemCode::FetchFailed, "too many requests; run the same command again later"),
        300..=399 => (ProblemCode::FetchFailed, "its redirects form a loop or lead nowhere; check the URL"),
        500.. => (ProblemCode::FetchFailed, "the server failed; run the same command again later"),
        _ => (ProblemCode::FetchFailed, "check the URL, or use a file"),
    };
    let problem = Problem::new(code, format!("`{shown}` returned status {status}")).hint(hint);
    match refusal_text(answer, None).await {
        Some(detail) => problem.cause(detail),
        None => problem,
    }
}
