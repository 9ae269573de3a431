//! Text that must not be shown.

use std::fmt;

/// A credential. It is always printed as `***`.
///
/// ```
/// # use rowmill_types::Secret;
/// let key = Secret::new("sk-123");
/// assert_eq!(format!("{key} {key:?}"), "*** ***");
/// assert_eq!(key.reveal(), "sk-123");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a credential.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The credential itself, for the one place that puts it into a header.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}
