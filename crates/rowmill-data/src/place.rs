//! The position of a record in an input: its row number, and how messages name it.

use rowmill_core::ports::RowSource;
use rowmill_types::settings::{ACCEPT_CHANGES, RESUME};
use rowmill_types::{BadRow, ErrorKind, Problem, ProblemCode};

/// A source of rows from one file, which may be one of several.
pub(crate) trait TextSource: RowSource {
    /// How many row numbers were used, by rows and by anything else that is counted.
    fn used_numbers(&self) -> u64;
}

/// The unit that a format counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Line,
    Item,
}

/// A file among those of an input.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// How many row numbers the previous files used.
    pub(crate) before: u64,
    /// Its name, if there are several.
    pub(crate) file: Option<String>,
}

impl Place {
    /// The row number of the `at`th record of the file.
    pub(crate) fn number(&self, at: u64) -> u64 {
        self.before + at
    }

    /// The bad row for the `at`th record of the file.
    pub(crate) fn bad(&self, unit: Unit, at: u64, kind: ErrorKind, what: &str) -> BadRow {
        let message = match (&self.file, unit) {
            (None, Unit::Line) => format!("Line {at}: {what}"),
            (None, Unit::Item) => format!("Item {at}: {what}"),
            (Some(file), Unit::Line) => format!("`{file}`, line {at}: {what}"),
            (Some(file), Unit::Item) => format!("`{file}`, item {at}: {what}"),
        };
        BadRow { number: self.number(at), kind, message }
    }

    /// The problem that the file called `name` cannot be read beyond its `at`th record.
    pub(crate) fn damage(name: &str, unit: Unit, at: u64, what: &str) -> Problem {
        let unit = match unit {
            Unit::Line => "line",
            Unit::Item => "item",
        };
        let message = format!("cannot read the input to its end: `{name}`, {unit} {at}: {what}");
        Problem::new(ProblemCode::InputUnreadable, message).hint(format!(
            "download the complete file, or fix it there, then continue with {resume_changed}; finished rows \
             are kept",
            resume_changed = RESUME.and(ACCEPT_CHANGES)
        ))
    }

    /// The same, from the error of [`rowmill_types::Row::parse`] for the `at`th record.
    pub(crate) fn parsed(&self, unit: Unit, at: u64, bad: BadRow) -> BadRow {
        if unit == Unit::Line && self.file.is_none() {
            return bad;
        }
        let what = bad.message.split_once(": ").map_or(bad.message.as_str(), |(_, what)| what);
        match what.split_once(" at line ") {
            Some((what, place)) if unit == Unit::Item => {
                self.bad(unit, at, bad.kind, &format!("{what} at line {place} of the item"))
            }
            _ => self.bad(unit, at, bad.kind, what),
        }
    }

    /// The bad row for an unusable header of the file.
    pub(crate) fn bad_header(&self, what: String) -> BadRow {
        let message = match &self.file {
            None => what,
            Some(file) => format!("`{file}`: {what}"),
        };
        BadRow { number: self.number(1), kind: ErrorKind::InvalidRow, message }
    }
}
