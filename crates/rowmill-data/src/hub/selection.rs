//! Selects the files for an address of the hub.

use std::path::PathBuf;

use futures_util::{StreamExt, TryStreamExt, stream};
use rowmill_http::Url;
use rowmill_types::{Problem, ProblemCode};
use serde::{Deserialize, Serialize};

use super::address::{HubAddress, is_commit};
use super::converted::converted;
use super::file::file;
use super::listing::{Listed, commit, matching, only_file};
use super::question::Hub;
use crate::fetch::{Entry, Expected, Fetcher, Purpose, digest_of};
use crate::{FileList, InputFile};

/// How many files are downloaded at once.
const AT_ONCE: usize = 4;

/// A file of the hub that an address selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteFile {
    /// Its name, with its extension.
    pub(super) name: String,
    /// Its key in the cache.
    pub(super) key: String,
    pub(super) url: Url,
    pub(super) revision: String,
    /// Its path in the repository; converted files have none.
    pub(super) path: Option<String>,
    pub(super) expected: Expected,
}

/// A file that was selected, recorded for offline use.
#[derive(Debug, Serialize, Deserialize)]
struct Chosen {
    name: String,
    url: String,
    revision: String,
    path: Option<String>,
    expected: Expected,
}

/// Fetches the files that an address selects.
pub(crate) async fn fetch(
    fetcher: &Fetcher<'_>,
    address: &HubAddress,
    purpose: Purpose,
) -> Result<FileList, Problem> {
    let hub = Hub::new(fetcher, address)?;
    let remote = chosen(&hub, purpose).await?;
    let here: Vec<_> =
        stream::iter(&remote).map(|remote| file(&hub, remote)).buffered(AT_ONCE).try_collect().await?;
    let mut identity = String::new();
    for (remote, here) in remote.iter().zip(&here) {
        identity.push_str(&format!("{} {}\n", remote.name, here.digest));
    }
    let identity = match here.as_slice() {
        [only] => only.digest.to_string(),
        _ => format!("sha256:{}", digest_of(&identity)),
    };
    let files = remote.into_iter().zip(here).map(|(remote, here)| InputFile::new(here.path, remote.name));
    Ok(FileList { name: address.to_string(), files: files.collect(), identity: Some(identity) })
}

/// Fetches one file and returns its path.
pub(crate) async fn fetch_text(fetcher: &Fetcher<'_>, address: &HubAddress) -> Result<PathBuf, Problem> {
    let hub = Hub::new(fetcher, address)?;
    let path = address.path.as_deref().unwrap_or_default();
    Ok(file(&hub, &named(&hub, address.revision(), path, Expected::default())).await?.path)
}

/// The files that an address selects: as the hub reports or, when offline, as it reported before.
async fn chosen(hub: &Hub<'_>, purpose: Purpose) -> Result<Vec<RemoteFile>, Problem> {
    let address = hub.address;
    if let Some(path) = address.path.as_deref().filter(|path| !path.contains('*')) {
        return Ok(vec![named(hub, address.revision(), path, Expected::default())]);
    }
    let offline = hub.fetcher.settings.hub.offline;
    let downloads = hub.fetcher.settings.downloads()?;
    let key = format!("{} {address} {purpose:?}", hub.endpoint());
    let open = || Entry::open(&downloads, &key, &|| {});
    if offline || is_commit(address.revision()) {
        let known: Option<Vec<Chosen>> = open().await?.read("chosen.json");
        match known.map(|known| known.into_iter().filter_map(|chosen| remembered(hub, chosen)).collect()) {
            Some(known) => return Ok(known),
            None if offline => return Err(not_known(address)),
            None => {}
        }
    }
    let found = ask(hub, purpose).await?;
    let written: Vec<_> = found.iter().map(Chosen::of).collect();
    open().await?.write("chosen.json", &written)?;
    Ok(found)
}

async fn ask(hub: &Hub<'_>, purpose: Purpose) -> Result<Vec<RemoteFile>, Problem> {
    let address = hub.address;
    if let Some(pattern) = &address.path {
        let commit = commit(hub).await?;
        let found = matching(hub, &commit, pattern).await?;
        return Ok(found.into_iter().map(|file| of_listed(hub, &commit, file)).collect());
    }
    if purpose == Purpose::Sql || address.config.is_some() || address.split.is_some() {
        return converted(hub).await;
    }
    let commit = commit(hub).await?;
    match only_file(hub, &commit).await? {
        Some(file) => Ok(vec![of_listed(hub, &commit, file)]),
        None => converted(hub).await,
    }
}

fn of_listed(hub: &Hub<'_>, commit: &str, file: Listed) -> RemoteFile {
    named(hub, commit, &file.path, file.expected)
}

/// A file by its path. It is cached under the path alone, so that a new commit that does not change it needs
/// no download.
fn named(hub: &Hub<'_>, revision: &str, path: &str, expected: Expected) -> RemoteFile {
    RemoteFile {
        name: path.to_owned(),
        key: hub.file("", path).to_string(),
        url: hub.file(revision, path),
        revision: revision.to_owned(),
        path: Some(path.to_owned()),
        expected,
    }
}

impl Chosen {
    fn of(file: &RemoteFile) -> Self {
        Self {
            name: file.name.clone(),
            url: file.url.to_string(),
            revision: file.revision.clone(),
            path: file.path.clone(),
            expected: file.expected.clone(),
        }
    }
}

fn remembered(hub: &Hub<'_>, chosen: Chosen) -> Option<RemoteFile> {
    if let Some(path) = &chosen.path {
        return Some(named(hub, &chosen.revision, path, chosen.expected));
    }
    let url = Url::parse(&chosen.url).ok()?;
    let Chosen { name, revision, expected, .. } = chosen;
    Some(RemoteFile { name, key: url.to_string(), url, revision, path: None, expected })
}

fn not_known(address: &HubAddress) -> Problem {
    let message = format!("`{address}` is not cached, and `HF_HUB_OFFLINE` does not allow asking the hub");
    Problem::new(ProblemCode::FetchFailed, message).hint("run the same command once without `HF_HUB_OFFLINE`")
}
