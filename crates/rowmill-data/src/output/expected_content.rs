//! The expected content of an output, so that a run notices at its end if somebody changed it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use xxhash_rust::xxh3::Xxh3Default;

/// How many bytes are read at once.
const BLOCK: usize = 256 * 1024;

/// The content of a file that only one run appends to, as a length and a digest.
#[derive(Default)]
pub(super) struct ExpectedContent(Mutex<ContentDigest>);

#[derive(Default, Clone)]
struct ContentDigest {
    /// The length of the file before the run wrote to it.
    before: u64,
    length: u64,
    digest: Xxh3Default,
}

impl ContentDigest {
    fn of(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut content = Self::default();
        let mut block = vec![0; BLOCK];
        loop {
            match file.read(&mut block) {
                Ok(0) => return Ok(Self { before: content.length, ..content }),
                Ok(count) => content.add(block.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.digest.update(bytes);
    }
}

impl ExpectedContent {
    /// Takes the current content of the file as the expected content.
    pub(super) fn begin(&self, path: &Path) -> io::Result<()> {
        *self.lock() = ContentDigest::of(path)?;
        Ok(())
    }

    /// Adds appended bytes to the expected content.
    pub(super) fn add(&self, bytes: &[u8]) {
        self.lock().add(bytes);
    }

    /// Whether nothing was appended.
    pub(super) fn is_unchanged(&self) -> bool {
        let content = self.lock();
        content.length == content.before
    }

    /// Whether the file holds exactly the expected content. An unreadable file does not.
    pub(super) fn matches_file(&self, path: &Path) -> bool {
        let expected = self.lock().clone();
        // Most changes change the length, and then nothing has to be read.
        let has_length = path.metadata().is_ok_and(|found| found.is_file() && found.len() == expected.length);
        has_length
            && ContentDigest::of(path).is_ok_and(|found| found.digest.digest() == expected.digest.digest())
    }

    fn lock(&self) -> MutexGuard<'_, ContentDigest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ExpectedContent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Written").field("length", &self.lock().length).finish_non_exhaustive()
    }
}
