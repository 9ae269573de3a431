//! A reader that returns bytes in small chunks, for tests.

use std::io::{self, Read};

/// Returns its bytes in chunks of the given sizes, repeatedly.
pub(crate) struct ChunkedReader {
    bytes: Vec<u8>,
    sizes: Vec<usize>,
    at: usize,
    turn: usize,
}

impl ChunkedReader {
    pub(crate) fn new(bytes: &[u8], sizes: Vec<usize>) -> Self {
        Self { bytes: bytes.into(), sizes, at: 0, turn: 0 }
    }
}

impl Read for ChunkedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()];
        self.turn += 1;
        let count = size.min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
