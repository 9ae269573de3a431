//! Selects the files for an address of the hub.

use std::path::PathBuf;

use futures_util::{StreamExt, TryStreamExt, stream};
use rowmill_http::Url;
use rowmill_types::{Problem, ProblemCode};
use serde::{Deserialize, Serialize};

use super::address_parts::is_commit;
use super::client::HubClient;
use super::converted::converted_files;
use super::file::fetch_hub_file;
use super::listing::{ListedFile, files_matching, resolve_commit, single_data_file};
use crate::download::{DownloadEntry, ExpectedFile, sha256_hex};
use crate::fetch::{FetchPurpose, Fetcher};
use crate::hub_address::HubAddress;
use crate::{FileList, InputFile};

/// How many files are downloaded at once.
const AT_ONCE: usize = 4;

/// A file of the hub that an address selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HubFile {
    /// Its name, with its extension.
    pub(super) name: String,
    /// Its key in the cache.
    pub(super) key: String,
    pub(super) url: Url,
    pub(super) revision: String,
    /// Its path in the repository; converted files have none.
    pub(super) path: Option<String>,
    pub(super) expected: ExpectedFile,
}

/// A file that was selected, recorded for offline use.
#[derive(Debug, Serialize, Deserialize)]
struct ChosenFile {
    name: String,
    url: String,
    revision: String,
    path: Option<String>,
    expected: ExpectedFile,
}

/// Fetches the files that an address selects.
pub(crate) async fn fetch_hub_files(
    fetcher: &Fetcher<'_>,
    address: &HubAddress,
    purpose: FetchPurpose,
) -> Result<FileList, Problem> {
    let hub = HubClient::new(fetcher, address)?;
    let remote = chosen(&hub, purpose).await?;
    let here: Vec<_> = stream::iter(&remote)
        .map(|remote| fetch_hub_file(&hub, remote))
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let mut identity = String::new();
    for (remote, here) in remote.iter().zip(&here) {
        identity.push_str(&format!("{} {}\n", remote.name, here.digest));
    }
    let identity = match here.as_slice() {
        [only] => only.digest.to_string(),
        _ => format!("sha256:{}", sha256_hex(&identity)),
    };
    let files = remote.into_iter().zip(here).map(|(remote, here)| InputFile::new(here.path, remote.name));
    Ok(FileList { name: address.to_string(), files: files.collect(), identity: Some(identity) })
}

/// Fetches one file and returns its path.
pub(crate) async fn fetch_single_file(
    fetcher: &Fetcher<'_>,
    address: &HubAddress,
) -> Result<PathBuf, Problem> {
    let hub = HubClient::new(fetcher, address)?;
    let path = address.path.as_deref().unwrap_or_default();
    Ok(fetch_hub_file(&hub, &named(&hub, address.revision(), path, ExpectedFile::default())).await?.path)
}

/// The files that an address selects: as the hub reports or, when offline, as it reported before.
async fn chosen(hub: &HubClient<'_>, purpose: FetchPurpose) -> Result<Vec<HubFile>, Problem> {
    let address = hub.address;
    if let Some(path) = address.path.as_deref().filter(|path| !path.contains('*')) {
        return Ok(vec![named(hub, address.revision(), path, ExpectedFile::default())]);
    }
    let offline = hub.fetcher.settings.hub.offline;
    let downloads = hub.fetcher.settings.downloads()?;
    let key = format!("{} {address} {purpose:?}", hub.endpoint());
    let open = || DownloadEntry::open(&downloads, &key, &|| {});
    if offline || is_commit(address.revision()) {
        let known: Option<Vec<ChosenFile>> = open().await?.read("chosen.json");
        match known.map(|known| known.into_iter().filter_map(|chosen| remembered(hub, chosen)).collect()) {
            Some(known) => return Ok(known),
            None if offline => return Err(not_known(address)),
            None => {}
        }
    }
    let found = ask(hub, purpose).await?;
    let written: Vec<_> = found.iter().map(ChosenFile::of).collect();
    open().await?.write("chosen.json", &written)?;
    Ok(found)
}

async fn ask(hub: &HubClient<'_>, purpose: FetchPurpose) -> Result<Vec<HubFile>, Problem> {
    let address = hub.address;
    if let Some(pattern) = &address.path {
        let commit = resolve_commit(hub).await?;
        let found = files_matching(hub, &commit, pattern).await?;
        return Ok(found.into_iter().map(|file| of_listed(hub, &commit, file)).collect());
    }
    if purpose == FetchPurpose::Sql || address.config.is_some() || address.split.is_some() {
        return converted_files(hub).await;
    }
    let commit = resolve_commit(hub).await?;
    match single_data_file(hub, &commit).await? {
        Some(file) => Ok(vec![of_listed(hub, &commit, file)]),
        None => converted_files(hub).await,
    }
}

fn of_listed(hub: &HubClient<'_>, commit: &str, file: ListedFile) -> HubFile {
    named(hub, commit, &file.path, file.expected)
}

/// A file by its path. It is cached under the path alone, so that a new commit that does not change it needs
/// no download.
fn named(hub: &HubClient<'_>, revision: &str, path: &str, expected: ExpectedFile) -> HubFile {
    HubFile {
        name: path.to_owned(),
        key: hub.file_url("", path).to_string(),
        url: hub.file_url(revision, path),
        revision: revision.to_owned(),
        path: Some(path.to_owned()),
        expected,
    }
}

impl ChosenFile {
    fn of(file: &HubFile) -> Self {
        Self {
            name: file.name.clone(),
            url: file.url.to_string(),
            revision: file.revision.clone(),
            path: file.path.clone(),
            expected: file.expected.clone(),
        }
    }
}

fn remembered(hub: &HubClient<'_>, chosen: ChosenFile) -> Option<HubFile> {
    if let Some(path) = &chosen.path {
        return Some(named(hub, &chosen.revision, path, chosen.expected));
    }
    let url = Url::parse(&chosen.url).ok()?;
    let ChosenFile { name, revision, expected, .. } = chosen;
    Some(HubFile { name, key: url.to_string(), url, revision, path: None, expected })
}

fn not_known(address: &HubAddress) -> Problem {
    let message = format!("`{address}` is not cached, and `HF_HUB_OFFLINE` does not allow asking the hub");
    Problem::new(ProblemCode::FetchFailed, message).hint("run the same command once without `HF_HUB_OFFLINE`")
}
