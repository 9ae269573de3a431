//! The first pass over the envelopes: finds the columns and their types.

use rowmill_types::settings::{FLATTEN, INCLUDE_INPUT};
use rowmill_types::{Problem, ProblemCode};

use super::cells::{EnvelopeParts, JsonField, object_fields};
use super::kind::{OutputType, StructFields};
use super::schema::type_from_schema;
use super::values::{JsonShape, json_shape};
use super::{InputRowInclusion, TableExportSettings, TableFormat, TableLayout};

/// The columns found in the envelopes of a run.
#[derive(Debug)]
pub(super) struct ColumnSurvey {
    /// Whether types are needed, or only names.
    typed: bool,
    wants_input: bool,
    pub(super) rows: u64,
    pub(super) failed_rows: u64,
    pub(super) rows_without_input: u64,
    pub(super) ids_are_numbers: bool,
    pub(super) reused: bool,
    pub(super) result: SurveyPart,
    pub(super) input: SurveyPart,
}

/// The columns found in the results, or in the input rows.
#[derive(Debug, Default)]
pub(super) struct SurveyPart {
    /// The fields of objects.
    pub(super) fields: StructFields,
    /// The type of values that are not objects, or of all values if there are too many fields.
    pub(super) whole: Option<OutputType>,
    crowded: bool,
}

impl ColumnSurvey {
    pub(super) fn new(settings: &TableExportSettings) -> Self {
        let mut result = SurveyPart::default();
        match settings.schema.as_deref().map(type_from_schema) {
            Some(OutputType::Struct(fields)) => result.fields = fields,
            Some(OutputType::Json) | None => {}
            Some(kind) => result.whole = Some(kind),
        }
        Self {
            typed: settings.format == TableFormat::Parquet,
            wants_input: settings.layout == TableLayout::Flat
                || settings.input == InputRowInclusion::Included,
            rows: 0,
            failed_rows: 0,
            rows_without_input: 0,
            ids_are_numbers: true,
            reused: false,
            result,
            input: SurveyPart::default(),
        }
    }

    /// Adds an envelope.
    pub(super) fn add_envelope(&mut self, envelope: &EnvelopeParts<'_>) {
        self.rows += 1;
        self.failed_rows += u64::from(!envelope.ok);
        self.rows_without_input += u64::from(envelope.input.is_none());
        self.ids_are_numbers &= json_shape(envelope.id) == JsonShape::Number;
        self.reused |= envelope.reused.is_some();
        if let Some(result) = envelope.result {
            self.result.see(result, self.typed);
        }
        if let Some(input) = envelope.input.filter(|_| self.wants_input) {
            self.input.see(input, self.typed);
        }
    }

    /// Checks that a flat table has every input row.
    pub(super) fn check(&self, settings: &TableExportSettings) -> Result<(), Problem> {
        if settings.layout == TableLayout::Envelope || self.rows_without_input == 0 {
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

impl SurveyPart {
    fn see(&mut self, json: &str, typed: bool) {
        let fields = if self.crowded { None } else { object_fields(json) };
        match fields {
            Some(fields) => self.see_fields(&fields, typed),
            None if self.crowded || json_shape(json) == JsonShape::Null => {}
            None => self.whole.get_or_insert(OutputType::Unknown).widen_for(json),
        }
    }

    fn see_fields(&mut self, fields: &[JsonField<'_>], typed: bool) {
        let fits = if typed { self.fields.widen_for(fields) } else { self.fields.admit_names(fields) };
        if !fits {
            // Too many names for columns: every value is kept as one JSON text.
            *self = Self { fields: StructFields::default(), whole: Some(OutputType::Json), crowded: true };
        }
    }
}
