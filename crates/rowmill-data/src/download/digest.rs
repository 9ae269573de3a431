//! The expected size and digest of a file, and their verification.

use std::fmt;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::{Deserialize, Serialize};

/// A digest of a file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileDigest {
    /// SHA-256 of the bytes, in hexadecimal digits.
    Sha256(String),
    /// Git's object name for the bytes, in hexadecimal digits.
    GitBlob(String),
}

/// What is known about a file before it is downloaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExpectedFile {
    pub(crate) size: Option<u64>,
    pub(crate) digest: Option<FileDigest>,
}

impl FileDigest {
    /// The digest in an entity tag of the hub: git's object name of a small file, SHA-256 of a large one.
    pub(crate) fn from_entity_tag(tag: &str) -> Option<Self> {
        let tag = tag.trim().trim_start_matches("W/").trim_matches('"').to_ascii_lowercase();
        let is_hex = tag.bytes().all(|byte| byte.is_ascii_hexdigit());
        match tag.len() {
            64 if is_hex => Some(Self::Sha256(tag)),
            40 if is_hex => Some(Self::GitBlob(tag)),
            _ => None,
        }
    }
}

impl fmt::Display for FileDigest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(text) => write!(out, "sha256:{text}"),
            Self::GitBlob(text) => write!(out, "git:{text}"),
        }
    }
}

/// Digests a file's bytes as they arrive.
#[derive(Clone)]
pub(super) struct FileDigester {
    context: Context,
    is_git: bool,
}

impl FileDigester {
    /// Uses the digest that `expected` names; SHA-256 if it names none.
    pub(super) fn new(expected: &ExpectedFile) -> Self {
        // Git's digest begins with the length, which the hub always reports.
        match (&expected.digest, expected.size) {
            (Some(FileDigest::GitBlob(_)), Some(size)) => {
                let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
                context.update(format!("blob {size}\0").as_bytes());
                Self { context, is_git: true }
            }
            _ => Self { context: Context::new(&SHA256), is_git: false },
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    pub(super) fn finish(self) -> FileDigest {
        let text = hex(self.context.finish().as_ref());
        if self.is_git { FileDigest::GitBlob(text) } else { FileDigest::Sha256(text) }
    }
}

impl fmt::Debug for FileDigester {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Digester").field("is_git", &self.is_git).finish_non_exhaustive()
    }
}

/// SHA-256 of a text, in hexadecimal digits.
pub(crate) fn sha256_hex(text: &str) -> String {
    hex(ring::digest::digest(&SHA256, text.as_bytes()).as_ref())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_known_by_gits_name_and_large_ones_by_sha256() {
        let git = FileDigest::from_entity_tag("\"3b18e512dba79e4c8300dd08aeb37f8e728b8dad\"").unwrap();
        let expected = ExpectedFile { size: Some(12), digest: Some(git.clone()) };
        let mut digester = FileDigester::new(&expected);
        digester.update(b"hello ");
        digester.update(b"world\n");
        assert_eq!(digester.finish(), git);

        let sha =
            FileDigest::from_entity_tag("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD")
                .unwrap();
        let expected = ExpectedFile { size: None, digest: Some(sha.clone()) };
        let mut digester = FileDigester::new(&expected);
        digester.update(b"abc");
        assert_eq!(digester.finish(), sha);
        assert_eq!(FileDigest::from_entity_tag("W/\"5f-18\""), None);
    }
}
