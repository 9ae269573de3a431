//! Datasets and files of the Hugging Face hub.

use std::fmt;

use rowmill_types::{Problem, ProblemCode};

/// An address such as `hf://datasets/owner/name/path?config=c&split=s&revision=r`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubAddress {
    text: String,
}

impl HubAddress {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// It is not written as it must be.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Err(Problem::new(ProblemCode::InputNotFound, format!("`{text}` cannot be read yet")))
    }
}

impl fmt::Display for HubAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}
