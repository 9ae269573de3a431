//! Bytes on disk that are removed with their last user.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Take};
use std::path::PathBuf;

/// A part of a file, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct StoredBytes {
    path: PathBuf,
    start: u64,
    length: u64,
}

impl StoredBytes {
    /// A whole file.
    pub(crate) fn whole(path: PathBuf) -> std::io::Result<Self> {
        let length = std::fs::metadata(&path)?.len();
        Ok(Self { path, start: 0, length })
    }

    /// The same file, but only this part of it.
    pub(crate) fn part(mut self, start: u64, length: u64) -> Self {
        self.start += start;
        self.length = length;
        self
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Opens it for reading, from its start to its end.
    pub(crate) fn open(&self) -> std::io::Result<Take<File>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.start))?;
        Ok(file.take(self.length))
    }

    /// Reads a place in it.
    pub(crate) fn read_at(&self, file: &mut File, place: RowPlace) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; place.length as usize];
        file.seek(SeekFrom::Start(self.start + place.start))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads all of it.
    pub(crate) fn read(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for StoredBytes {
    fn drop(&mut self) {
        // The folder is removed at the end in any case.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Where a row is in its input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlace {
    pub(crate) start: u64,
    pub(crate) length: u32,
}
