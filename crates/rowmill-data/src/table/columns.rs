//! The columns of a table: their names, the sources of their values, and the values of a row.

use std::collections::HashSet;

use super::cells::{EnvelopeParts, object_fields};
use super::kind::{OutputType, StructFields, WholeNumbers};
use super::survey::{ColumnSurvey, SurveyPart};
use super::{InputRowInclusion, TableExportSettings, TableFormat, TableLayout};

/// Names that result fields do not get in any format, so that a column has the same name in every format and
/// with every result.
const ENVELOPE_NAMES: [&str; 9] =
    ["", "id", "row_number", "ok", "result", "error", "error_type", "error_message", "reused"];

/// The source of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnSource {
    Id,
    RowNumber,
    Ok,
    Result,
    Error,
    ErrorType,
    ErrorMessage,
    Reused,
    Input,
    /// A field of the result or of the input row, which is found by name.
    Field,
}

/// A column.
#[derive(Debug)]
pub(super) struct OutputColumn {
    pub(super) name: String,
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet has typed columns"))]
    pub(super) kind: OutputType,
    source: ColumnSource,
}

/// The columns of a table.
#[derive(Debug)]
pub(super) struct OutputColumns {
    pub(super) list: Vec<OutputColumn>,
    result: FoundFields,
    input: FoundFields,
}

/// The fields of a part of the envelope, and the index of the first one's column.
#[derive(Debug, Default)]
struct FoundFields {
    fields: StructFields,
    first: usize,
}

impl OutputColumns {
    /// The columns for a survey.
    pub(super) fn new(survey: ColumnSurvey, settings: &TableExportSettings) -> Self {
        match settings.layout {
            TableLayout::Envelope => Self::of_envelope(survey, settings),
            TableLayout::Flat => Self::flat(survey),
        }
    }

    fn of_envelope(survey: ColumnSurvey, settings: &TableExportSettings) -> Self {
        let mut taken: HashSet<String> = ENVELOPE_NAMES.iter().map(|name| (*name).to_owned()).collect();
        let mut list = head(&survey, "");
        let result = FoundFields { first: list.len(), fields: survey.result.fields };
        for (name, kind) in &result.fields.list {
            list.push(column(&free(name, "result.", &mut taken), ColumnSource::Field, kind.clone()));
        }
        list.extend(whole(
            survey.result.whole,
            result.fields.list.is_empty(),
            "result",
            ColumnSource::Result,
        ));
        if settings.format == TableFormat::Parquet {
            list.push(column("error", ColumnSource::Error, error_kind()));
        } else {
            list.push(column("error_type", ColumnSource::ErrorType, OutputType::Text));
            list.push(column("error_message", ColumnSource::ErrorMessage, OutputType::Text));
        }
        if survey.reused {
            list.push(column("reused", ColumnSource::Reused, OutputType::Text));
        }
        let mut input = FoundFields { first: list.len(), fields: StructFields::default() };
        if settings.input == InputRowInclusion::Included {
            let SurveyPart { fields, whole: rest, .. } = survey.input;
            for (name, kind) in &fields.list {
                let name = free(&format!("input.{name}"), "input.", &mut taken);
                list.push(column(&name, ColumnSource::Field, kind.clone()));
            }
            list.extend(whole(rest, false, &free("input", "input.", &mut taken), ColumnSource::Input));
            input.fields = fields;
        }
        Self { list, result, input }
    }

    /// If names clash, the result's field keeps the name, the input's gets the prefix `input_`, and the
    /// envelope's get as many leading `_` as they need.
    fn flat(survey: ColumnSurvey) -> Self {
        let mut taken = HashSet::from([String::new()]);
        let head = head(&survey, "_");
        let result_whole =
            whole(survey.result.whole, survey.result.fields.list.is_empty(), "result", ColumnSource::Result);
        taken.extend(result_whole.as_ref().map(|column| column.name.clone()));
        let named: Vec<OutputColumn> = (survey.result.fields.list.iter())
            .map(|(name, kind)| column(&free(name, "result.", &mut taken), ColumnSource::Field, kind.clone()))
            .collect();
        let SurveyPart { fields, whole: rest, .. } = survey.input;
        let clashes = |name: &str| taken.contains(name);
        let kept: HashSet<String> =
            fields.list.iter().map(|(name, _)| name.clone()).filter(|name| !clashes(name)).collect();
        let clashing: Vec<bool> = fields.list.iter().map(|(name, _)| clashes(name)).collect();
        taken.extend(kept);
        let mut list: Vec<OutputColumn> = (fields.list.iter().zip(clashing))
            .map(|((name, kind), clashes)| {
                let name = if clashes { free(name, "input_", &mut taken) } else { name.clone() };
                column(&name, ColumnSource::Field, kind.clone())
            })
            .collect();
        let input = FoundFields { first: 0, fields };
        list.extend(rest.map(|kind| column(&free("input", "input_", &mut taken), ColumnSource::Input, kind)));
        let result = FoundFields { first: list.len(), fields: survey.result.fields };
        list.extend(named);
        list.extend(result_whole);
        let mut tail = head;
        tail.push(column("_error_type", ColumnSource::ErrorType, OutputType::Text));
        tail.push(column("_error_message", ColumnSource::ErrorMessage, OutputType::Text));
        tail.extend(survey.reused.then(|| column("_reused", ColumnSource::Reused, OutputType::Text)));
        for column in &mut tail {
            column.name = free(&column.name, "_", &mut taken);
        }
        list.extend(tail);
        Self { list, result, input }
    }

    /// The values of a row as JSON text, one per column; `None` for a missing one.
    pub(super) fn cells<'a>(&self, envelope: &EnvelopeParts<'a>) -> Vec<Option<&'a str>> {
        let error = envelope.error.and_then(object_fields).unwrap_or_default();
        let of_error = |name: &str| {
            let found = error.iter().find(|(known, _)| known == name);
            Some(found.map_or("null", |(_, value)| *value))
        };
        let mut objects = [false; 2];
        let mut cells: Vec<Option<&'a str>> = vec![None; self.list.len()];
        for (at, (found, json)) in
            [(&self.result, envelope.result), (&self.input, envelope.input)].into_iter().enumerate()
        {
            if let (false, Some(fields)) = (found.fields.list.is_empty(), json.and_then(object_fields)) {
                objects[at] = true;
                for (name, value) in fields {
                    let place = found.fields.find(&name).and_then(|place| cells.get_mut(found.first + place));
                    if let Some(cell) = place {
                        *cell = Some(value);
                    }
                }
            }
        }
        let [result_is_spread, input_is_spread] = objects;
        for (column, cell) in self.list.iter().zip(&mut cells) {
            match column.source {
                ColumnSource::Field => {}
                ColumnSource::Id => *cell = Some(envelope.id),
                ColumnSource::RowNumber => *cell = Some(envelope.number),
                ColumnSource::Ok => *cell = Some(envelope.ok_text()),
                ColumnSource::Error => *cell = envelope.error,
                ColumnSource::ErrorType => *cell = of_error("type"),
                ColumnSource::ErrorMessage => *cell = of_error("message"),
                ColumnSource::Reused => *cell = envelope.reused,
                ColumnSource::Result => *cell = envelope.result.filter(|_| !result_is_spread),
                ColumnSource::Input => *cell = envelope.input.filter(|_| !input_is_spread),
            }
        }
        cells
    }
}

fn column(name: &str, source: ColumnSource, kind: OutputType) -> OutputColumn {
    OutputColumn { name: name.to_owned(), kind, source }
}

/// The columns that every table has.
fn head(survey: &ColumnSurvey, prefix: &str) -> Vec<OutputColumn> {
    let number = OutputType::Whole(WholeNumbers::default());
    let id = if survey.ids_are_numbers { number.clone() } else { OutputType::Text };
    [
        ("id", ColumnSource::Id, id),
        ("row_number", ColumnSource::RowNumber, number),
        ("ok", ColumnSource::Ok, OutputType::Bool),
    ]
    .into_iter()
    .map(|(name, source, kind)| column(&format!("{prefix}{name}"), source, kind))
    .collect()
}

/// The column for values that are not objects; it also exists if there would be no other.
fn whole(kind: Option<OutputType>, alone: bool, name: &str, source: ColumnSource) -> Option<OutputColumn> {
    kind.or(alone.then_some(OutputType::Text)).map(|kind| column(name, source, kind))
}

/// The name, prefixed with `prefix` until it is unique.
fn free(name: &str, prefix: &str, taken: &mut HashSet<String>) -> String {
    let mut name = name.to_owned();
    while taken.contains(&name) {
        name.insert_str(0, prefix);
    }
    taken.insert(name.clone());
    name
}

fn error_kind() -> OutputType {
    let mut fields = StructFields::default();
    let number = OutputType::Whole(WholeNumbers::default());
    for (name, kind) in [
        ("type", OutputType::Text),
        ("message", OutputType::Text),
        ("status", number.clone()),
        ("code", OutputType::Text),
        ("attempts", number),
        ("raw_text", OutputType::Text),
    ] {
        fields.add(name.to_owned(), kind);
    }
    OutputType::Struct(fields)
}
