//! Files that a provider keeps for this run, each uploaded once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_http::{HeaderName, HeaderValue};
use rowmill_types::Attachment;
use tokio::sync::OnceCell;

/// The maximum number of files kept at the provider at once; beyond it, the oldest that no call uses are
/// deleted first. It limits what a run of many rows keeps, both at the provider and in memory.
const MOST: usize = 256;

/// A file at the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteFile {
    /// Its id there, which is used to delete it and which errors mention.
    pub(crate) id: String,
    /// The reference that requests contain.
    pub(crate) reference: String,
}

/// The entry of a file, filled once it is uploaded.
#[derive(Debug)]
pub(crate) struct UploadCacheEntry {
    key: UploadKey,
    pub(crate) remote: OnceCell<RemoteFile>,
}

type UploadKey = (String, String);

/// Files by content and media type.
#[derive(Debug, Default)]
pub(crate) struct UploadCache(Mutex<CachedUploads>);

#[derive(Debug, Default)]
struct CachedUploads {
    entries: HashMap<UploadKey, Arc<UploadCacheEntry>>,
    order: VecDeque<UploadKey>,
}

impl UploadCache {
    fn lock(&self) -> MutexGuard<'_, CachedUploads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of a file, and the files that must be deleted to make room for it.
    pub(crate) fn entry(&self, file: &Attachment) -> (Arc<UploadCacheEntry>, Vec<RemoteFile>) {
        let key = (file.digest.clone(), file.media_type.clone());
        let mut held = self.lock();
        if let Some(entry) = held.entries.get(&key) {
            return (Arc::clone(entry), Vec::new());
        }
        let entry = Arc::new(UploadCacheEntry { key: key.clone(), remote: OnceCell::new() });
        held.entries.insert(key.clone(), Arc::clone(&entry));
        held.order.push_back(key);
        (entry, held.evict())
    }

    /// Forgets a file, unless it has been uploaded again since.
    pub(crate) fn forget(&self, entry: &Arc<UploadCacheEntry>) {
        let mut held = self.lock();
        if held.entries.get(&entry.key).is_some_and(|kept| Arc::ptr_eq(kept, entry)) {
            held.entries.remove(&entry.key);
            held.order.retain(|key| *key != entry.key);
        }
    }

    /// Forgets all files, and returns those that were uploaded.
    pub(crate) fn drain(&self) -> Vec<RemoteFile> {
        let held = std::mem::take(&mut *self.lock());
        held.entries.into_values().filter_map(|entry| entry.remote.get().cloned()).collect()
    }
}

impl CachedUploads {
    fn evict(&mut self) -> Vec<RemoteFile> {
        let mut gone = Vec::new();
        while self.order.len() > MOST {
            // Every user of an entry holds a reference, and no new one can be taken while this is locked.
            let idle =
                |key: &UploadKey| self.entries.get(key).is_none_or(|entry| Arc::strong_count(entry) == 1);
            let Some(at) = self.order.iter().position(idle) else { break };
            let entry = self.order.remove(at).and_then(|key| self.entries.remove(&key));
            gone.extend(entry.and_then(|entry| entry.remote.get().cloned()));
        }
        gone
    }
}

/// The uploaded files of one request.
#[derive(Debug, Default)]
pub(crate) struct UploadedFiles {
    pub(super) entries: Vec<Arc<UploadCacheEntry>>,
    /// The header that a request needs to refer to files.
    pub(crate) header: Option<(HeaderName, HeaderValue)>,
}

impl UploadedFiles {
    /// No files.
    pub(crate) const NONE: Self = Self { entries: Vec::new(), header: None };

    /// The reference to a file, if it was uploaded.
    pub(crate) fn reference(&self, file: &Attachment) -> Option<&str> {
        let is_it =
            |entry: &&Arc<UploadCacheEntry>| entry.key.0 == file.digest && entry.key.1 == file.media_type;
        let entry = self.entries.iter().find(is_it)?;
        Some(entry.remote.get()?.reference.as_str())
    }

    #[cfg(test)]
    pub(crate) fn with_reference(file: &Attachment, reference: &str) -> Self {
        let key = (file.digest.clone(), file.media_type.clone());
        let remote = RemoteFile { id: reference.to_owned(), reference: reference.to_owned() };
        let entry = UploadCacheEntry { key, remote: OnceCell::new_with(Some(remote)) };
        Self { entries: vec![Arc::new(entry)], header: None }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn file(number: usize) -> Attachment {
        let bytes = Bytes::from_static(b"x");
        Attachment { name: "x".into(), media_type: "image/png".into(), bytes, digest: number.to_string() }
    }

    fn fill(cache: &UploadCache, number: usize) -> (Arc<UploadCacheEntry>, Vec<RemoteFile>) {
        let (entry, gone) = cache.entry(&file(number));
        let remote = RemoteFile { id: number.to_string(), reference: number.to_string() };
        entry.remote.set(remote).unwrap();
        (entry, gone)
    }

    #[test]
    fn files_beyond_the_bound_go_unless_a_call_uses_them() {
        let cache = UploadCache::default();
        let (used, _) = fill(&cache, 0);
        for number in 1..MOST {
            assert_eq!(fill(&cache, number).1, []);
        }
        let (_, gone) = fill(&cache, MOST);
        assert_eq!(gone.len(), 1);
        assert_eq!(gone[0].id, "1", "0 is in use");
        drop(used);
        assert_eq!(fill(&cache, MOST + 1).1[0].id, "0");
        assert_eq!(cache.drain().len(), MOST);
        assert!(cache.drain().is_empty());
    }

    #[test]
    fn a_file_that_was_uploaded_anew_is_not_forgotten() {
        let cache = UploadCache::default();
        let (old, _) = fill(&cache, 1);
        cache.forget(&old);
        let (new, _) = fill(&cache, 1);
        cache.forget(&old);
        assert!(Arc::ptr_eq(&cache.entry(&file(1)).0, &new));
    }
}
