//! The cache entry of one address.
//!
//! ```text
//! downloads/<key>/versions.json       the version of the address at each revision
//!                 <version>/<name>    a complete file
//!                 partial             an unfinished download
//!                 partial.json        what it will be when complete
//!                 lock                held while any of this changes
//! ```
//!
//! A complete file is never changed or removed, because a run may be reading it.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rowmill_types::{Problem, ProblemCode, private_file_options};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::digest::{FileDigest, sha256_hex};

/// How often to check whether another process has finished.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A version of a file that was downloaded completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CachedVersion {
    /// What distinguishes it from other versions.
    pub(crate) version: String,
    /// Its name, with its extension.
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) digest: FileDigest,
    /// The entity tag with which the server is asked whether the file has changed.
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
}

/// The folder of one address, locked.
#[derive(Debug)]
pub(crate) struct DownloadEntry {
    folder: PathBuf,
    /// Held for its lock.
    lock: Option<File>,
}

impl DownloadEntry {
    /// Opens the folder of an address. If another process has locked it, calls `waits` once and waits for the
    /// folder.
    pub(crate) async fn open(
        downloads: &Path,
        address: &str,
        waits: &(dyn Fn() + Sync),
    ) -> Result<Self, Problem> {
        let key: String = sha256_hex(address).chars().take(32).collect();
        let folder = downloads.join(key);
        make_folder(&folder).map_err(|error| write_problem(&folder, &error))?;
        let path = folder.join("lock");
        let file = open_private_file(&path).map_err(|error| write_problem(&path, &error))?;
        let mut has_waited = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { folder, lock: Some(file) }),
                Err(TryLockError::WouldBlock) => {
                    if !has_waited {
                        waits();
                    }
                    has_waited = true;
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                // A file system without locks: downloads get unique names instead.
                Err(TryLockError::Error(_)) => return Ok(Self { folder, lock: None }),
            }
        }
    }

    /// The version of the address at a revision when it was last requested, if that is still in the cache.
    pub(crate) fn version_at_revision(&self, revision: &str) -> Option<CachedVersion> {
        self.versions().remove(revision).filter(|known| self.holds(known))
    }

    /// A version that was downloaded for any revision, if it is still in the cache.
    pub(crate) fn version(&self, version: &str) -> Option<CachedVersion> {
        self.versions().into_values().find(|known| known.version == version && self.holds(known))
    }

    /// Records which version the address has at some revisions.
    pub(crate) fn record_version(&self, revisions: &[&str], known: &CachedVersion) -> Result<(), Problem> {
        let mut versions = self.versions();
        for revision in revisions {
            versions.insert((*revision).to_owned(), known.clone());
        }
        self.write("versions.json", &versions)
    }

    /// The path of a version.
    pub(crate) fn path(&self, known: &CachedVersion) -> PathBuf {
        self.folder.join(&known.version).join(&known.name)
    }

    /// Reads a JSON document of this folder; a missing or damaged one is `None`.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.folder.join(name)).ok()?).ok()
    }

    /// Writes a JSON document of this folder atomically.
    pub(crate) fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Problem> {
        let path = self.folder.join(name);
        let write = || -> io::Result<()> {
            let mut beside = tempfile::NamedTempFile::new_in(&self.folder)?;
            beside.write_all(&serde_json::to_vec(value)?)?;
            beside.persist(&path)?;
            Ok(())
        };
        write().map_err(|error| write_problem(&path, &error))
    }

    /// The name of a file to which only the holder of the lock writes. Without locks, every process has its
    /// own.
    pub(super) fn own_file_name(&self, name: &str) -> String {
        match self.lock {
            Some(_) => name.to_owned(),
            None => format!("{}-{name}", std::process::id()),
        }
    }

    /// The path of a file in this folder.
    pub(super) fn file_path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Moves a complete file to its final path.
    pub(super) fn install(&self, from: &Path, known: &CachedVersion) -> Result<(), Problem> {
        let path = self.path(known);
        let place = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                make_folder(folder)?;
            }
            fs::rename(from, &path)
        };
        place().map_err(|error| write_problem(&path, &error))
    }

    fn versions(&self) -> BTreeMap<String, CachedVersion> {
        self.read("versions.json").unwrap_or_default()
    }

    fn holds(&self, known: &CachedVersion) -> bool {
        fs::metadata(self.path(known)).is_ok_and(|found| found.is_file() && found.len() == known.size)
    }
}

/// Creates a folder that only its owner can read, and its missing parents.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens a file that only its owner can read, keeping its content.
pub(super) fn open_private_file(path: &Path) -> io::Result<File> {
    private_file_options().read(true).write(true).create(true).truncate(false).open(path)
}

/// The problem that the cache cannot be written.
pub(super) fn write_problem(path: &Path, error: &io::Error) -> Problem {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full: free some space, or set a folder on another disk with `ROWMILL_CACHE_DIR`; \
             the downloaded part is kept and the same command continues from there"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit on file sizes (`ulimit -f`, or a quota); what was downloaded is kept, and the same command \
             continues from there"
        }
        _ => "make the folder writable, or set another one with `ROWMILL_CACHE_DIR`",
    };
    Problem::new(ProblemCode::FetchFailed, format!("cannot write the download to `{}`", path.display()))
        .cause(error)
        .hint(hint)
}
