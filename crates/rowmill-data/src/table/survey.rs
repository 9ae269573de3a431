//! The first pass over the envelopes: finds the columns and their types.

use rowmill_types::settings::{FLATTEN, INCLUDE_INPUT};
use rowmill_types::{Problem, ProblemCode};

use super::cells::{Envelope, Field, fields};
use super::kind::{Fields, Kind};
use super::schema::kind_of_schema;
use super::values::{Shape, shape};
use super::{InputPart, Layout, TableFormat, TableSettings};

/// The columns found in the envelopes of a run.
#[derive(Debug)]
pub(super) struct Survey {
    /// Whether types are needed, or only names.
    typed: bool,
    wants_input: bool,
    pub(super) rows: u64,
    pub(super) failed_rows: u64,
    pub(super) rows_without_input: u64,
    pub(super) ids_are_numbers: bool,
    pub(super) reused: bool,
    pub(super) result: Part,
    pub(super) input: Part,
}

/// The columns found in the results, or in the input rows.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The fields of objects.
    pub(super) fields: Fields,
    /// The type of values that are not objects, or of all values if there are too many fields.
    pub(super) whole: Option<Kind>,
    crowded: bool,
}

impl Survey {
    pub(super) fn new(settings: &TableSettings) -> Self {
        let mut result = Part::default();
        match settings.schema.as_deref().map(kind_of_schema) {
            Some(Kind::Struct(fields)) => result.fields = fields,
            Some(Kind::Json) | None => {}
            Some(kind) => result.whole = Some(kind),
        }
        Self {
            typed: settings.format == TableFormat::Parquet,
            wants_input: settings.layout == Layout::Flat || settings.input == InputPart::Kept,
            rows: 0,
            failed_rows: 0,
            rows_without_input: 0,
            ids_are_numbers: true,
            reused: false,
            result,
            input: Part::default(),
        }
    }

    /// Adds an envelope.
    pub(super) fn see(&mut self, envelope: &Envelope<'_>) {
        self.rows += 1;
        self.failed_rows += u64::from(!envelope.ok);
        self.rows_without_input += u64::from(envelope.input.is_none());
        self.ids_are_numbers &= shape(envelope.id) == Shape::Number;
        self.reused |= envelope.reused.is_some();
        if let Some(result) = envelope.result {
            self.result.see(result, self.typed);
        }
        if let Some(input) = envelope.input.filter(|_| self.wants_input) {
            self.input.see(input, self.typed);
        }
    }

    /// Checks that a flat table has every input row.
    pub(super) fn check(&self, settings: &TableSettings) -> Result<(), Problem> {
        if settings.layout == Layout::Envelope || self.rows_without_input == 0 {
            return Ok(());
        }
        let message = format!(
            "{} of {} envelopes do not contain their input row, so they cannot be merged with it",
            self.rows_without_input, self.rows
        );
        Err(Problem::new(ProblemCode::RunUnusable, message)
            .hint(format!("omit {FLATTEN}, or run again with {INCLUDE_INPUT}")))
    }
}

impl Part {
    fn see(&mut self, json: &str, typed: bool) {
        let fields = if self.crowded { None } else { fields(json) };
        match fields {
            Some(fields) => self.see_fields(&fields, typed),
            None if self.crowded || shape(json) == Shape::Null => {}
            None => self.whole.get_or_insert(Kind::Unknown).admit(json),
        }
    }

    fn see_fields(&mut self, fields: &[Field<'_>], typed: bool) {
        let fits = if typed { self.fields.admit(fields) } else { self.fields.admit_names(fields) };
        if !fits {
            // Too many names for columns: every value is kept as one JSON text.
            *self = Self { fields: Fields::default(), whole: Some(Kind::Json), crowded: true };
        }
    }
}
