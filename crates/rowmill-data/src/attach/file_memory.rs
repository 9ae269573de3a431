//! Limits how many bytes of files are in memory at once.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum bytes of files in memory at once, over all rows.
const MOST: u64 = 256 * 1024 * 1024;
/// The unit in which shares are counted.
const UNIT: u64 = 1024;

/// The memory for files, shared by all rows.
#[derive(Debug)]
pub(super) struct FileMemory {
    room: Arc<Semaphore>,
    units: u32,
}

/// The part of this memory that one row holds.
#[derive(Debug)]
pub(super) struct FileMemoryShare(Option<OwnedSemaphorePermit>);

impl FileMemory {
    pub(super) fn new() -> Self {
        let units = u32::try_from(MOST / UNIT).unwrap_or(u32::MAX);
        Self { room: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// Waits until this many bytes are free. A row that needs more than the total gets all of it and is then
    /// alone.
    ///
    /// All files of a row reserve their memory at once: rows that held some and waited for more would block
    /// each other.
    pub(super) async fn reserve(&self, bytes: u64) -> FileMemoryShare {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units);
        // The semaphore is never closed; without a permit the bytes would still be held.
        FileMemoryShare(self.room.clone().acquire_many_owned(units).await.ok())
    }
}

impl FileMemoryShare {
    /// Releases whatever exceeds `bytes`.
    pub(super) fn shrink(&mut self, bytes: u64) {
        let Some(permit) = &mut self.0 else { return };
        let needed = usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX);
        drop(permit.split(permit.num_permits().saturating_sub(needed)));
    }
}

/// Ties bytes to the share that accounts for them: it is released with the last clone.
pub(super) fn hold_share(content: impl AsRef<[u8]> + Send + 'static, share: Arc<FileMemoryShare>) -> Bytes {
    Bytes::from_owner(SharedBytes { content, _share: share })
}

struct SharedBytes<C> {
    content: C,
    _share: Arc<FileMemoryShare>,
}

impl<C: AsRef<[u8]>> AsRef<[u8]> for SharedBytes<C> {
    fn as_ref(&self) -> &[u8] {
        self.content.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_share_is_given_back_with_the_last_clone() {
        let memory = FileMemory { room: Arc::new(Semaphore::new(4)), units: 4 };
        let share = memory.reserve(3 * UNIT + 1).now_or_never().unwrap();
        let bytes = hold_share(vec![1; 3], Arc::new(share));
        let clone = bytes.slice(1..);
        drop(bytes);
        assert!(memory.reserve(1).now_or_never().is_none());
        drop(clone);
        assert!(memory.reserve(1).now_or_never().is_some());
    }

    #[test]
    fn more_than_there_is_gets_all_and_can_be_shrunk() {
        let memory = FileMemory { room: Arc::new(Semaphore::new(4)), units: 4 };
        let mut share = memory.reserve(u64::MAX).now_or_never().unwrap();
        assert_eq!(memory.room.available_permits(), 0);
        share.shrink(UNIT + 1);
        assert_eq!(memory.room.available_permits(), 2);
        share.shrink(100 * UNIT);
        assert_eq!(memory.room.available_permits(), 2);
    }
}
