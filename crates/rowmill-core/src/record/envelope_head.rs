//! Reads the start of an envelope.

use std::borrow::Cow;
use std::fmt;

use rowmill_types::{RowErrorKind, RowId};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// The start of an envelope: enough to identify its row and how the row ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeHead {
    /// The row's id.
    pub id: RowId,
    /// The row's number.
    pub number: u64,
    /// Whether the row is ok.
    pub ok: bool,
    /// Whether its call was aborted, so that it is unknown whether it was billed.
    pub interrupted: bool,
    /// Whether the run stopped before the row was finished, and all the row's calls were answered.
    pub stopped: bool,
    /// Whether a tool that must not run twice ran, and it is unknown whether it took effect.
    pub outcome_unknown: bool,
    /// Whether its number stands in for an id, because the row could not be read.
    pub number_stands_in: bool,
}

/// Failures that may occur before a row has an id.
const NAMELESS: [RowErrorKind; 6] = [
    RowErrorKind::InvalidJson,
    RowErrorKind::InvalidRow,
    RowErrorKind::MissingIdField,
    RowErrorKind::InvalidIdField,
    RowErrorKind::DuplicateId,
    RowErrorKind::Attachment,
];

#[derive(Deserialize)]
struct EnvelopeFields<'a> {
    id: IdField,
    row_number: u64,
    ok: bool,
    #[serde(borrow, default)]
    error: Option<ErrorFields<'a>>,
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

/// An id, parsed without copying the rest of the line: a resume reads millions of them.
pub(crate) struct IdField(pub(crate) RowId);

impl<'de> Deserialize<'de> for IdField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = IdField;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an id, which is a string or a number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<IdField, E> {
        Ok(IdField(RowId::Number(number)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IdField, E> {
        Ok(IdField(RowId::Text(text.into())))
    }
}

impl EnvelopeHead {
    /// Parses the head of an envelope; for anything else the error says what is wrong.
    ///
    /// # Errors
    ///
    /// The line is not JSON or not an envelope.
    pub fn parse(envelope: &[u8]) -> Result<Self, serde_json::Error> {
        let fields: EnvelopeFields<'_> = serde_json::from_slice(envelope)?;
        let IdField(id) = fields.id;
        let kind = fields.error.map(|error| error.kind).unwrap_or_default();
        Ok(Self::new(id, fields.row_number, fields.ok, &kind))
    }

    /// A head from the four values that every report about a row has. `kind` is the type of its error, or empty.
    #[must_use]
    pub fn new(id: RowId, number: u64, ok: bool, kind: &str) -> Self {
        let interrupted = kind == RowErrorKind::Interrupted.name();
        let stopped = kind == RowErrorKind::RunStopped.name();
        let outcome_unknown = kind == RowErrorKind::OutcomeUnknown.name();
        let stands_in =
            id == RowId::Number(number) && NAMELESS.iter().any(|nameless| nameless.name() == kind);
        Self { id, number, ok, interrupted, stopped, outcome_unknown, number_stands_in: stands_in }
    }

    /// Whether the row continues from its kept turns.
    #[must_use]
    pub fn resumes_from_turns(&self) -> bool {
        self.interrupted || self.stopped
    }

    /// The same for a row that is identified by its number, whatever id its envelope has.
    #[must_use]
    pub fn with_number_as_id(self) -> Self {
        Self { id: RowId::Number(self.number), ..self }
    }
}
