//! The position of a record in an input: its row number, and how messages name it.

use rowmill_core::ports::RowSource;
use rowmill_types::settings::{ACCEPT_CHANGES, RESUME};
use rowmill_types::{BadRow, Problem, ProblemCode, RowErrorKind};

/// A source of rows from one file, which may be one of several.
pub(crate) trait TextRowSource: RowSource {
    /// How many row numbers were used, by rows and by anything else that is counted.
    fn used_numbers(&self) -> u64;
}

/// The unit that a format counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordUnit {
    Line,
    Item,
    /// A record of CSV, which may span several lines. The header is the first.
    Row,
}

/// A file among those of an input.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordPlacement {
    /// How many row numbers the previous files used.
    pub(crate) before: u64,
    /// Its name, if there are several.
    pub(crate) file: Option<String>,
}

impl RecordPlacement {
    /// The row number of the `at`th record of the file.
    pub(crate) fn number(&self, at: u64) -> u64 {
        self.before + at
    }

    /// The bad row for the `at`th record of the file.
    pub(crate) fn bad_row(&self, unit: RecordUnit, at: u64, kind: RowErrorKind, what: &str) -> BadRow {
        let message = match (&self.file, unit) {
            (None, RecordUnit::Line) => format!("Line {at}: {what}"),
            (None, RecordUnit::Item) => format!("Item {at}: {what}"),
            (None, RecordUnit::Row) => format!("Row {at}: {what}"),
            (Some(file), RecordUnit::Line) => format!("`{file}`, line {at}: {what}"),
            (Some(file), RecordUnit::Item) => format!("`{file}`, item {at}: {what}"),
            (Some(file), RecordUnit::Row) => format!("`{file}`, row {at}: {what}"),
        };
        BadRow { number: self.number(at), kind, message }
    }

    /// The problem that the file called `name` cannot be read beyond its `at`th record.
    pub(crate) fn damage(name: &str, unit: RecordUnit, at: u64, what: &str) -> Problem {
        let unit = match unit {
            RecordUnit::Line => "line",
            RecordUnit::Item => "item",
            RecordUnit::Row => "row",
        };
        let message = format!("cannot read the input to its end: `{name}`, {unit} {at}: {what}");
        Problem::new(ProblemCode::InputUnreadable, message).hint(format!(
            "download the complete file, or fix it there, then continue with {resume_changed}; finished rows \
             are kept",
            resume_changed = RESUME.and(ACCEPT_CHANGES)
        ))
    }

    /// The same, from the error of [`rowmill_types::Row::parse`] for the `at`th record.
    pub(crate) fn bad_row_from_parser(&self, unit: RecordUnit, at: u64, bad: BadRow) -> BadRow {
        if unit == RecordUnit::Line && self.file.is_none() {
            return bad;
        }
        let what = bad.message.split_once(": ").map_or(bad.message.as_str(), |(_, what)| what);
        match what.split_once(" at line ") {
            Some((what, place)) if unit == RecordUnit::Item => {
                self.bad_row(unit, at, bad.kind, &format!("{what} at line {place} of the item"))
            }
            _ => self.bad_row(unit, at, bad.kind, what),
        }
    }

    /// The bad row for an unusable header of the file.
    pub(crate) fn bad_header_row(&self, what: String) -> BadRow {
        let message = match &self.file {
            None => what,
            Some(file) => format!("`{file}`: {what}"),
        };
        BadRow { number: self.number(1), kind: RowErrorKind::InvalidRow, message }
    }
}
