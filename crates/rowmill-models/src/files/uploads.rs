//! Uploads each file once, and deletes all of them at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use rowmill_http::{HeaderName, HeaderValue, HttpClient};
use rowmill_types::{Attachment, CallError};

use super::cache::{UploadCache, UploadCacheEntry};
use super::rules::FileStorage;
use super::stores::{FileStore, UploadAddress};
use crate::call_error::CallErrorReporter;

/// How many files are deleted at once, and how long that may take.
const AT_ONCE: usize = 8;
const AT_MOST: Duration = Duration::from_secs(30);

/// The uploaded files of this run.
#[derive(Debug)]
pub(crate) struct Uploads {
    store: FileStore,
    cache: UploadCache,
    /// Set if the server turns out to have no file API.
    absent: AtomicBool,
}

impl Uploads {
    pub(crate) fn new(
        http: &HttpClient,
        storage: FileStorage,
        place: UploadAddress,
        reporter: CallErrorReporter,
    ) -> Self {
        let store = FileStore::new(http.clone(), storage, place, reporter);
        Self { store, cache: UploadCache::default(), absent: AtomicBool::new(false) }
    }

    /// The header that a request needs to refer to files.
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.store.header()
    }

    /// The file at the provider, uploaded if necessary; `None` if the server, which is not the vendor's own,
    /// has no file API.
    ///
    /// Calls that need the same file wait for one upload. If that is dropped or fails, the next of them
    /// uploads it.
    pub(super) async fn upload_once(
        &self,
        file: &Attachment,
    ) -> Result<Option<Arc<UploadCacheEntry>>, CallError> {
        if self.absent.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (entry, gone) = self.cache.entry(file);
        for remote in gone {
            self.store.delete(&remote).await;
        }
        let uploaded = entry.remote.get_or_try_init(|| self.store.upload(file)).await;
        match uploaded {
            Ok(_) => Ok(Some(entry)),
            Err(error) if matches!(error.status, Some(404 | 405 | 501)) => {
                self.absent.store(true, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets a file that the provider no longer has.
    pub(super) fn forget(&self, entry: &Arc<UploadCacheEntry>) {
        self.cache.forget(entry);
    }

    /// Deletes all files, as far as time permits.
    pub(super) async fn delete_all(&self) {
        let remotes = self.cache.drain();
        let deletions = stream::iter(remotes).for_each_concurrent(AT_ONCE, async |remote| {
            self.store.delete(&remote).await;
        });
        // Remaining files expire or stay in the account; the run does not wait for them.
        drop(tokio::time::timeout(AT_MOST, deletions).await);
    }
}
