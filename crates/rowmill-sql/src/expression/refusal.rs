//! Why a query is rejected, and at which position in its text.

use sqlparser::tokenizer::{Location, Span};

use super::typed::Typed;

/// A position in the text of a query, if known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextPlace(pub(crate) Option<Location>);

impl From<Span> for TextPlace {
    fn from(span: Span) -> Self {
        Self((span.start.line > 0).then_some(span.start))
    }
}

/// Why a query is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) place: TextPlace,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>, place: impl Into<TextPlace>) -> Self {
        Self { message: message.into(), hint: None, place: place.into() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the notes about the columns among values whose types do not match.
    pub(crate) fn noting(mut self, values: &[&Typed]) -> Self {
        let notes: Vec<_> = values.iter().filter_map(|value| value.note()).collect();
        if !notes.is_empty() {
            self.hint = Some(notes.join("; "));
        }
        self
    }
}

/// The result of binding, or the reason why it is not possible.
pub(crate) type Bound<T> = Result<T, Refusal>;
