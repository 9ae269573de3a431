//! Why a query is rejected, and at which position in its text.

use sqlparser::tokenizer::{Location, Span};

use super::typed::TypedExpression;

/// A position in the text of a query, if known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct QueryPosition(pub(crate) Option<Location>);

impl From<Span> for QueryPosition {
    fn from(span: Span) -> Self {
        Self((span.start.line > 0).then_some(span.start))
    }
}

/// Why a query is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryRefusal {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) place: QueryPosition,
}

impl QueryRefusal {
    pub(crate) fn new(message: impl Into<String>, place: impl Into<QueryPosition>) -> Self {
        Self { message: message.into(), hint: None, place: place.into() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the notes about the columns among values whose types do not match.
    pub(crate) fn with_column_notes(mut self, values: &[&TypedExpression]) -> Self {
        let notes: Vec<_> = values.iter().filter_map(|value| value.note()).collect();
        if !notes.is_empty() {
            self.hint = Some(notes.join("; "));
        }
        self
    }
}

/// The result of binding, or the reason why it is not possible.
pub(crate) type BindResult<T> = Result<T, QueryRefusal>;
