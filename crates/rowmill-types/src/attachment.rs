//! A file that goes to the model with a message.

use std::fmt;

use bytes::Bytes;

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
}

impl fmt::Debug for Attachment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Attachment({}, {}, {} bytes)", self.name, self.media_type, self.bytes.len())
    }
}

/// What files a model takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentRules {
    /// The kinds that it takes.
    pub kinds: Vec<AttachmentKind>,
    /// The most bytes that the files of one request may have together.
    pub max_total: u64,
    /// The most files that one request may have.
    pub max_count: usize,
}

/// One kind of file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentKind {
    /// The media type: one such as `image/png`, or a family such as `text/*`.
    pub media_type: &'static str,
    /// The most bytes that a file of this kind may have.
    pub max_bytes: u64,
}
