//! A file that is sent to the model with a message.

use std::fmt;

use bytes::Bytes;

/// The weight of an image: about a thousand tokens at four bytes each.
const IMAGE_TEXT_BYTES: usize = 4_000;
/// Providers cut an image into tiles and charge less than this for all of them.
const MOST_IMAGE_TOKENS: u64 = 20_000;

/// A file, read and checked, as it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name without folders, as the model sees it.
    pub name: String,
    /// Its media type, such as `application/pdf`; text of any kind starts with `text/`.
    pub media_type: String,
    /// The bytes. Clones share them.
    pub bytes: Bytes,
    /// The SHA-256 of the bytes, in hexadecimal.
    pub digest: String,
}

impl Attachment {
    /// Its text, if it is text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if self.media_type.starts_with("text/") { std::str::from_utf8(&self.bytes).ok() } else { None }
    }

    /// The number of bytes of prose that use about as many tokens as this file, for pacing. The error is learned from
    /// the answers.
    #[must_use]
    pub fn equivalent_prose_bytes(&self) -> usize {
        match self.media_type.split('/').next() {
            Some("text") => self.bytes.len(),
            Some("image") => IMAGE_TEXT_BYTES,
            _ => (self.bytes.len() / 16).max(IMAGE_TEXT_BYTES),
        }
    }

    /// An upper bound of the tokens that a provider makes of this file, for budgets.
    #[must_use]
    pub fn max_tokens(&self) -> u64 {
        let bytes = self.bytes.len() as u64;
        if self.media_type.starts_with("text/") { bytes } else { bytes.max(MOST_IMAGE_TOKENS) }
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Attachment({}, {}, {} bytes)", self.name, self.media_type, self.bytes.len())
    }
}

/// The files that a model accepts. Text is not among the kinds unless it has a limit of its own: every model accepts
/// text files, because they are sent as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentRules {
    /// The kinds of files, in the order in which messages list them.
    pub kinds: Vec<AttachmentKind>,
    /// The maximum number of bytes of all files of one row.
    pub max_total: u64,
    /// The maximum number of files of one row.
    pub max_count: usize,
}

/// A kind of file that a model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachmentKind {
    /// One media type such as `image/png`, a family such as `text/*`, or `*/*` for all.
    pub media_type: &'static str,
    /// The maximum number of bytes of one file.
    pub max_bytes: u64,
}

impl AttachmentRules {
    /// Checks one file; the error states what the model accepts instead.
    ///
    /// ```
    /// # use rowmill_types::{AttachmentKind, AttachmentRules};
    /// let kinds = vec![AttachmentKind { media_type: "image/png", max_bytes: 5 << 20 }];
    /// let rules = AttachmentRules { kinds, max_total: 20 << 20, max_count: 10 };
    /// assert!(rules.check("a.png", "image/png", 1000).is_ok());
    /// assert!(rules.check("a.md", "text/markdown", 1000).is_ok());
    /// assert_eq!(
    ///     rules.check("a.pdf", "application/pdf", 1000).unwrap_err(),
    ///     "`a.pdf` is application/pdf, which the model does not accept; it accepts image/png and text"
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// The model does not accept files of this kind or size.
    pub fn check(&self, name: &str, media_type: &str, size: u64) -> Result<(), String> {
        let Some(most) = self.max_bytes(media_type) else {
            let mut kinds: Vec<_> = self.kinds.iter().map(|kind| kind.media_type).collect();
            kinds.retain(|kind| !kind.starts_with("text/"));
            let taken = match kinds.as_slice() {
                [] => "only text".to_owned(),
                kinds => format!("{} and text", kinds.join(", ")),
            };
            return Err(format!(
                "`{name}` is {media_type}, which the model does not accept; it accepts {taken}"
            ));
        };
        if size > most {
            return Err(format!(
                "`{name}` is too large: it has {size} bytes, and the model accepts at most {most} of \
                 {media_type}"
            ));
        }
        Ok(())
    }

    /// The maximum number of bytes of one file of this kind; `None` if the model does not accept it.
    #[must_use]
    pub fn max_bytes(&self, media_type: &str) -> Option<u64> {
        let kind = self.kinds.iter().find(|kind| kind.matches(media_type));
        let text = media_type.starts_with("text/").then_some(self.max_total);
        kind.map(|kind| kind.max_bytes).or(text)
    }
}

impl AttachmentKind {
    /// Whether files of this media type are of this kind.
    #[must_use]
    pub fn matches(&self, media_type: &str) -> bool {
        match self.media_type.strip_suffix('*') {
            Some("*/") => true,
            Some(family) => media_type.starts_with(family),
            None => media_type == self.media_type,
        }
    }
}
