//! The columns of a table: their names, the sources of their values, and the values of a row.

use std::collections::HashSet;

use super::cells::{Envelope, fields};
use super::kind::{Fields, Kind, Whole};
use super::survey::{Part, Survey};
use super::{InputPart, Layout, TableFormat, TableSettings};

/// Names that result fields do not get in any format, so that a column has the same name in every format and
/// with every result.
const ENVELOPE_NAMES: [&str; 9] =
    ["", "id", "row_number", "ok", "result", "error", "error_type", "error_message", "reused"];

/// The source of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
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
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
    source: Source,
}

/// The columns of a table.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) list: Vec<Column>,
    result: Found,
    input: Found,
}

/// The fields of a part of the envelope, and the index of the first one's column.
#[derive(Debug, Default)]
struct Found {
    fields: Fields,
    first: usize,
}

impl Columns {
    /// The columns for a survey.
    pub(super) fn new(survey: Survey, settings: &TableSettings) -> Self {
        match settings.layout {
            Layout::Envelope => Self::of_envelope(survey, settings),
            Layout::Flat => Self::flat(survey),
        }
    }

    fn of_envelope(survey: Survey, settings: &TableSettings) -> Self {
        let mut taken: HashSet<String> = ENVELOPE_NAMES.iter().map(|name| (*name).to_owned()).collect();
        let mut list = head(&survey, "");
        let result = Found { first: list.len(), fields: survey.result.fields };
        for (name, kind) in &result.fields.list {
            list.push(column(&free(name, "result.", &mut taken), Source::Field, kind.clone()));
        }
        list.extend(whole(survey.result.whole, result.fields.list.is_empty(), "result", Source::Result));
        if settings.format == TableFormat::Parquet {
            list.push(column("error", Source::Error, error_kind()));
        } else {
            list.push(column("error_type", Source::ErrorType, Kind::Text));
            list.push(column("error_message", Source::ErrorMessage, Kind::Text));
        }
        if survey.reused {
            list.push(column("reused", Source::Reused, Kind::Text));
        }
        let mut input = Found { first: list.len(), fields: Fields::default() };
        if settings.input == InputPart::Kept {
            let Part { fields, whole: rest, .. } = survey.input;
            for (name, kind) in &fields.list {
                let name = free(&format!("input.{name}"), "input.", &mut taken);
                list.push(column(&name, Source::Field, kind.clone()));
            }
            list.extend(whole(rest, false, &free("input", "input.", &mut taken), Source::Input));
            input.fields = fields;
        }
        Self { list, result, input }
    }

    /// If names clash, the result's field keeps the name, the input's gets the prefix `input_`, and the
    /// envelope's get as many leading `_` as they need.
    fn flat(survey: Survey) -> Self {
        let mut taken = HashSet::from([String::new()]);
        let head = head(&survey, "_");
        let result_whole =
            whole(survey.result.whole, survey.result.fields.list.is_empty(), "result", Source::Result);
        taken.extend(result_whole.as_ref().map(|column| column.name.clone()));
        let named: Vec<Column> = (survey.result.fields.list.iter())
            .map(|(name, kind)| column(&free(name, "result.", &mut taken), Source::Field, kind.clone()))
            .collect();
        let Part { fields, whole: rest, .. } = survey.input;
        let clashes = |name: &str| taken.contains(name);
        let kept: HashSet<String> =
            fields.list.iter().map(|(name, _)| name.clone()).filter(|name| !clashes(name)).collect();
        let clashing: Vec<bool> = fields.list.iter().map(|(name, _)| clashes(name)).collect();
        taken.extend(kept);
        let mut list: Vec<Column> = (fields.list.iter().zip(clashing))
            .map(|((name, kind), clashes)| {
                let name = if clashes { free(name, "input_", &mut taken) } else { name.clone() };
                column(&name, Source::Field, kind.clone())
            })
            .collect();
        let input = Found { first: 0, fields };
        list.extend(rest.map(|kind| column(&free("input", "input_", &mut taken), Source::Input, kind)));
        let result = Found { first: list.len(), fields: survey.result.fields };
        list.extend(named);
        list.extend(result_whole);
        let mut tail = head;
        tail.push(column("_error_type", Source::ErrorType, Kind::Text));
        tail.push(column("_error_message", Source::ErrorMessage, Kind::Text));
        tail.extend(survey.reused.then(|| column("_reused", Source::Reused, Kind::Text)));
        for column in &mut tail {
            column.name = free(&column.name, "_", &mut taken);
        }
        list.extend(tail);
        Self { list, result, input }
    }

    /// The values of a row as JSON text, one per column; `None` for a missing one.
    pub(super) fn cells<'a>(&self, envelope: &Envelope<'a>) -> Vec<Option<&'a str>> {
        let error = envelope.error.and_then(fields).unwrap_or_default();
        let of_error = |name: &str| {
            let found = error.iter().find(|(known, _)| known == name);
            Some(found.map_or("null", |(_, value)| *value))
        };
        let mut objects = [false; 2];
        let mut cells: Vec<Option<&'a str>> = vec![None; self.list.len()];
        for (at, (found, json)) in
            [(&self.result, envelope.result), (&self.input, envelope.input)].into_iter().enumerate()
        {
            if let (false, Some(fields)) = (found.fields.list.is_empty(), json.and_then(fields)) {
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
                Source::Field => {}
                Source::Id => *cell = Some(envelope.id),
                Source::RowNumber => *cell = Some(envelope.number),
                Source::Ok => *cell = Some(envelope.ok_text()),
                Source::Error => *cell = envelope.error,
                Source::ErrorType => *cell = of_error("type"),
                Source::ErrorMessage => *cell = of_error("message"),
                Source::Reused => *cell = envelope.reused,
                Source::Result => *cell = envelope.result.filter(|_| !result_is_spread),
                Source::Input => *cell = envelope.input.filter(|_| !input_is_spread),
            }
        }
        cells
    }
}

fn column(name: &str, source: Source, kind: Kind) -> Column {
    Column { name: name.to_owned(), kind, source }
}

/// The columns that every table has.
fn head(survey: &Survey, prefix: &str) -> Vec<Column> {
    let number = Kind::Whole(Whole::default());
    let id = if survey.ids_are_numbers { number.clone() } else { Kind::Text };
    [("id", Source::Id, id), ("row_number", Source::RowNumber, number), ("ok", Source::Ok, Kind::Bool)]
        .into_iter()
        .map(|(name, source, kind)| column(&format!("{prefix}{name}"), source, kind))
        .collect()
}

/// The column for values that are not objects; it also exists if there would be no other.
fn whole(kind: Option<Kind>, alone: bool, name: &str, source: Source) -> Option<Column> {
    kind.or(alone.then_some(Kind::Text)).map(|kind| column(name, source, kind))
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

fn error_kind() -> Kind {
    let mut fields = Fields::default();
    let number = Kind::Whole(Whole::default());
    for (name, kind) in [
        ("type", Kind::Text),
        ("message", Kind::Text),
        ("status", number.clone()),
        ("code", Kind::Text),
        ("attempts", number),
        ("raw_text", Kind::Text),
    ] {
        fields.add(name.to_owned(), kind);
    }
    Kind::Struct(fields)
}
