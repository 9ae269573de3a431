//! Fetches one file of the hub.

use std::path::PathBuf;

use rowmill_types::{Problem, ProblemCode};

use super::address_parts::is_commit;
use super::client::{FileHead, HubClient};
use super::refusal::{RequestSubject, refusal_problem};
use super::selection::HubFile;
use crate::download::{
    CachedVersion, DownloadEntry, DownloadOutcome, DownloadRequest, ExpectedFile, FileDigest, download,
    safe_file_name, version_folder_name,
};
use crate::fetch::FetchEventKind;

/// A file that is now in the cache.
#[derive(Debug)]
pub(super) struct LocalFile {
    pub(super) path: PathBuf,
    pub(super) digest: FileDigest,
}

/// Fetches a file, unless the cached one is current.
pub(super) async fn fetch_hub_file(hub: &HubClient<'_>, remote: &HubFile) -> Result<LocalFile, Problem> {
    let shown = shown(hub, remote);
    let fetcher = hub.fetcher;
    let waits = || fetcher.emit(&shown, FetchEventKind::waiting_for_process());
    let entry = DownloadEntry::open(&fetcher.settings.downloads()?, &remote.key, &waits).await?;
    let kept = |known: CachedVersion| {
        fetcher.emit(&shown, FetchEventKind::AlreadyCached { bytes: known.size });
        LocalFile { path: entry.path(&known), digest: known.digest }
    };
    let known = entry.version_at_revision(&remote.revision);
    match known.clone() {
        // The content of a commit never changes.
        Some(known) if fetcher.settings.hub.offline || is_commit(&remote.revision) => return Ok(kept(known)),
        None if fetcher.settings.hub.offline => return Err(not_kept(&shown)),
        _ => {}
    }
    let subject = RequestSubject::File(&remote.name);
    let head = hub.head(&remote.url, subject).await?;
    let expected = expected(remote, &head);
    let revisions: Vec<&str> =
        [Some(remote.revision.as_str()), head.commit.as_deref()].into_iter().flatten().collect();
    let same =
        expected.digest.as_ref().and_then(|digest| entry.version(&version_folder_name(&digest.to_string())));
    if let Some(same) = same {
        entry.record_version(&revisions, &same)?;
        return Ok(kept(same));
    }
    let wanted = DownloadRequest {
        url: pinned(hub, remote, &head),
        credential: hub.credential(),
        shown: &shown,
        name: Some(safe_file_name(remote.name.rsplit('/').next().unwrap_or_default())),
        kept: known.as_ref().filter(|_| expected.digest.is_none()),
        expected,
    };
    let known = match download(fetcher, &entry, wanted).await? {
        DownloadOutcome::Whole(known) => known,
        DownloadOutcome::Unchanged(known) => {
            fetcher.emit(&shown, FetchEventKind::AlreadyCached { bytes: known.size });
            known
        }
        DownloadOutcome::Refused(answer) => return Err(refusal_problem(hub, answer, subject).await),
    };
    entry.record_version(&revisions, &known)?;
    Ok(LocalFile { path: entry.path(&known), digest: known.digest })
}

/// The name of the file in messages.
fn shown(hub: &HubClient<'_>, remote: &HubFile) -> String {
    match &remote.path {
        Some(path) => hub.address.address_of_file(path),
        None => format!("hf://datasets/{}@~parquet/{}", hub.address.repository, remote.name),
    }
}

/// The address of exactly the requested version, even if the revision moves meanwhile.
fn pinned(hub: &HubClient<'_>, remote: &HubFile, head: &FileHead) -> rowmill_http::Url {
    match (&remote.path, &head.commit) {
        (Some(path), Some(commit)) => hub.file_url(commit, path),
        _ => remote.url.clone(),
    }
}

/// What the file listing reported, or else what the hub reports for this file.
fn expected(remote: &HubFile, head: &FileHead) -> ExpectedFile {
    let size = remote.expected.size.or(head.expected.size);
    let digest = remote.expected.digest.clone().or_else(|| head.expected.digest.clone());
    // Git's object names cover the size, so without it they cannot be verified.
    let digest = digest.filter(|digest| size.is_some() || matches!(digest, FileDigest::Sha256(_)));
    ExpectedFile { size, digest }
}

fn not_kept(shown: &str) -> Problem {
    Problem::new(
        ProblemCode::FetchFailed,
        format!("`{shown}` is not cached, and `HF_HUB_OFFLINE` does not allow downloading it"),
    )
    .hint("run the same command once without `HF_HUB_OFFLINE`")
}
