//! Digests that identify contents: SHA-256 in hexadecimal.

use std::fmt::Write as _;
use std::io::{self, Read};

use ring::digest::{Context, Digest, SHA256, digest};

/// How much is read at once.
const BLOCK: usize = 256 * 1024;

/// The digest of bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hexadecimal(&digest(&SHA256, bytes))
}

/// The digest of everything that is read, and its length in bytes.
pub(crate) fn of_reader(mut reader: impl Read, buffer: &mut Vec<u8>) -> io::Result<(String, u64)> {
    buffer.resize(BLOCK, 0);
    let mut context = Context::new(&SHA256);
    let mut length = 0;
    loop {
        match reader.read(buffer) {
            Ok(0) => return Ok((hexadecimal(&context.finish()), length)),
            Ok(count) => {
                context.update(buffer.get(..count).unwrap_or_default());
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hexadecimal(digest: &Digest) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest.as_ref() {
        // Writing into a string cannot fail.
        let written = write!(text, "{byte:02x}");
        debug_assert!(written.is_ok(), "a string takes everything");
    }
    text
}
