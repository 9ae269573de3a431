//! The digest of a document.

use std::io::{self, Read};

use ring::digest::{Context, SHA256};

use crate::digest::hexadecimal;

/// How much is read at once.
const BLOCK: usize = 256 * 1024;

/// The digest of everything that is read, and its length in bytes.
pub(super) fn of_reader(mut reader: impl Read, buffer: &mut Vec<u8>) -> io::Result<(String, u64)> {
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
