//! Fetches one file of the hub.

use std::path::PathBuf;

use rowmill_types::{Problem, ProblemCode};

use super::address::is_commit;
use super::question::{Head, Hub};
use super::refusal::{Subject, refused};
use super::selection::RemoteFile;
use crate::fetch::{Digest, Entry, Expected, FetchStep, Got, Known, Wanted, download, safe, version_name};

/// A file that is now in the cache.
#[derive(Debug)]
pub(super) struct Here {
    pub(super) path: PathBuf,
    pub(super) digest: Digest,
}

/// Fetches a file, unless the cached one is current.
pub(super) async fn file(hub: &Hub<'_>, remote: &RemoteFile) -> Result<Here, Problem> {
    let shown = shown(hub, remote);
    let fetcher = hub.fetcher;
    let waits = || fetcher.tell(&shown, FetchStep::another_process());
    let entry = Entry::open(&fetcher.settings.downloads()?, &remote.key, &waits).await?;
    let kept = |known: Known| {
        fetcher.tell(&shown, FetchStep::Kept { bytes: known.size });
        Here { path: entry.path(&known), digest: known.digest }
    };
    let known = entry.known(&remote.revision);
    match known.clone() {
        // The content of a commit never changes.
        Some(known) if fetcher.settings.hub.offline || is_commit(&remote.revision) => return Ok(kept(known)),
        None if fetcher.settings.hub.offline => return Err(not_kept(&shown)),
        _ => {}
    }
    let subject = Subject::File(&remote.name);
    let head = hub.head(&remote.url, subject).await?;
    let expected = expected(remote, &head);
    let revisions: Vec<&str> =
        [Some(remote.revision.as_str()), head.commit.as_deref()].into_iter().flatten().collect();
    let same = expected.digest.as_ref().and_then(|digest| entry.version(&version_name(&digest.to_string())));
    if let Some(same) = same {
        entry.remember(&revisions, &same)?;
        return Ok(kept(same));
    }
    let wanted = Wanted {
        url: pinned(hub, remote, &head),
        credential: hub.credential(),
        shown: &shown,
        name: Some(safe(remote.name.rsplit('/').next().unwrap_or_default())),
        kept: known.as_ref().filter(|_| expected.digest.is_none()),
        expected,
    };
    let known = match download(fetcher, &entry, wanted).await? {
        Got::Whole(known) => known,
        Got::Unchanged(known) => {
            fetcher.tell(&shown, FetchStep::Kept { bytes: known.size });
            known
        }
        Got::Refused(answer) => return Err(refused(hub, answer, subject).await),
    };
    entry.remember(&revisions, &known)?;
    Ok(Here { path: entry.path(&known), digest: known.digest })
}

/// The name of the file in messages.
fn shown(hub: &Hub<'_>, remote: &RemoteFile) -> String {
    match &remote.path {
        Some(path) => hub.address.of_file(path),
        None => format!("hf://datasets/{}@~parquet/{}", hub.address.repository, remote.name),
    }
}

/// The address of exactly the requested version, even if the revision moves meanwhile.
fn pinned(hub: &Hub<'_>, remote: &RemoteFile, head: &Head) -> rowmill_http::Url {
    match (&remote.path, &head.commit) {
        (Some(path), Some(commit)) => hub.file(commit, path),
        _ => remote.url.clone(),
    }
}

/// What the file listing reported, or else what the hub reports for this file.
fn expected(remote: &RemoteFile, head: &Head) -> Expected {
    let size = remote.expected.size.or(head.expected.size);
    let digest = remote.expected.digest.clone().or_else(|| head.expected.digest.clone());
    // Git's object names cover the size, so without it they cannot be verified.
    let digest = digest.filter(|digest| size.is_some() || matches!(digest, Digest::Sha256(_)));
    Expected { size, digest }
}

fn not_kept(shown: &str) -> Problem {
    Problem::new(
        ProblemCode::FetchFailed,
        format!("`{shown}` is not cached, and `HF_HUB_OFFLINE` does not allow downloading it"),
    )
    .hint("run the same command once without `HF_HUB_OFFLINE`")
}
