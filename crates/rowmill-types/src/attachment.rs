//! A file that goes to the model with a message.

use std::fmt;

use bytes::Bytes;

/// What an image weighs: about a thousand tokens at four bytes each.
const IMAGE_WEIGHT: usize = 4_000;
/// Providers cut an image into tiles and charge less than this for all of them.
const MOST_IMAGE_TOKENS: u64 = 20_000;

/// A file, read and checked, as it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name without folders, as the model gets to see it.
    pub name: String,
    /// What it is, such as `application/pdf`; text of any kind begins with `text/`.
    pub media_type: String,
    /// The bytes. Clones share them.
    pub bytes: Bytes,
    /// The SHA-256 of the bytes, in hexadecimal.
    pub digest: String,
}

impl Attachment {
    /// Its text, where it is text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if self.media_type.starts_with("text/") { std::str::from_utf8(&self.bytes).ok() } else { None }
    }

    /// About how many bytes of prose use as many tokens as this file, for the pace of calls.
    /// What is wrong with it is learned from the answers.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self.media_type.split('/').next() {
            Some("text") => self.bytes.len(),
            Some("image") => IMAGE_WEIGHT,
            _ => (self.bytes.len() / 16).max(IMAGE_WEIGHT),
        }
    }

    /// More tokens than a provider makes of this file, for budgets.
    #[must_use]
    pub fn most_tokens(&self) -> u64 {
        let bytes = self.bytes.len() as u64;
        if self.media_type.starts_with("text/") { bytes } else { bytes.max(MOST_IMAGE_TOKENS) }
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Attachment({}, {}, {} bytes)", self.name, self.media_type, self.bytes.len())
    }
}
