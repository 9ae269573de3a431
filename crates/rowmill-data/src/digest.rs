//! Digests that identify contents: SHA-256 in hexadecimal.

use std::fmt::Write as _;

use ring::digest::{Digest, SHA256, digest};

/// The digest of bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hexadecimal(&digest(&SHA256, bytes))
}

/// A digest as text.
pub(crate) fn hexadecimal(digest: &Digest) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest.as_ref() {
        // Writing into a string cannot fail.
        let written = write!(text, "{byte:02x}");
        debug_assert!(written.is_ok(), "a string takes everything");
    }
    text
}
