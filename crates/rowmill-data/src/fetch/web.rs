//! Files at plain web addresses.

use std::path::PathBuf;

use rowmill_http::{Answer, Url};
use rowmill_types::{Problem, ProblemCode};

use super::ask::{credential_of, said_in};
use super::bring::Fetcher;
use super::digest::Expected;
use super::download::{Got, Wanted, download};
use super::entry::{Entry, Known};
use super::event::FetchStep;
use crate::{FileList, InputFile};

/// Fetches the file at an address, unless the cached one has not changed.
pub(super) async fn web(fetcher: &Fetcher<'_>, url: &Url) -> Result<FileList, Problem> {
    let shown = crate::shown_source(url.as_str());
    let (clean, credential) = credential_of(url);
    let waits = || fetcher.tell(&shown, FetchStep::another_process());
    // The key is the whole address, so that a file behind one password is not returned for another.
    let entry = Entry::open(&fetcher.settings.downloads()?, url.as_str(), &waits).await?;
    let kept = entry.known("").filter(|known| known.etag.is_some() || known.last_modified.is_some());
    let wanted = Wanted {
        url: clean,
        credential,
        shown: &shown,
        expected: Expected::default(),
        name: None,
        kept: kept.as_ref(),
    };
    let known = match download(fetcher, &entry, wanted).await? {
        Got::Whole(known) => known,
        Got::Unchanged(known) => {
            fetcher.tell(&shown, FetchStep::Kept { bytes: known.size });
            known
        }
        Got::Refused(answer) => return Err(refused(&shown, answer).await),
    };
    entry.remember(&[""], &known)?;
    Ok(list(shown, entry.path(&known), known))
}

fn list(shown: String, path: PathBuf, known: Known) -> FileList {
    let identity = Some(known.digest.to_string());
    FileList { name: shown, files: vec![InputFile::new(path, known.name)], identity }
}

async fn refused(shown: &str, answer: Answer) -> Problem {
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
    match said_in(answer, None).await {
        Some(said) => problem.cause(said),
        None => problem,
    }
}
