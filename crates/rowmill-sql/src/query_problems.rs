//! Problems of a query, with the position and a hint.

use rowmill_types::settings::{SQL_ENGINE, WORK_DIR};
use rowmill_types::{Problem, ProblemCode};
use rusqlite::{Error, ErrorCode};

use sqlparser::tokenizer::Location;

use crate::expression::evaluate::EvaluationFailure;
use crate::expression::refusal::QueryRefusal;
use crate::query::QueryText;
use crate::scan_table::ScanProblemSlot;

/// How much of a long line is shown before and after the position.
const SHOWN: usize = 60;

/// Converts the errors of SQLite to problems.
pub(crate) struct ProblemMaker<'q> {
    pub(crate) text: &'q QueryText,
    pub(crate) problem: &'q ScanProblemSlot,
}

impl ProblemMaker<'_> {
    /// The connection could not be set up.
    pub(crate) fn setup_problem(&self, error: Error) -> Problem {
        if let Error::SqlInputError { .. } | Error::ModuleError(_) = &error {
            return self.prepare_problem(&error);
        }
        Problem::new(ProblemCode::WriteFailed, "cannot prepare the query")
            .cause(readable_message(&error))
            .hint("check that the folder for temporary files can be written to")
    }

    /// SQLite rejects the translated query.
    pub(crate) fn prepare_problem(&self, error: &Error) -> Problem {
        if let Some(problem) = self.problem.take() {
            return problem;
        }
        let message = format!("{} cannot be run: {}", self.text.setting, readable_message(error));
        Problem::new(ProblemCode::InvalidQuery, message).hint(general_hint())
    }

    /// The query failed while it ran.
    pub(crate) fn run_problem(&self, error: &Error) -> Problem {
        if let Some(problem) = self.problem.take() {
            return problem;
        }
        let what = readable_message(error);
        let full = matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DiskFull
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::CannotOpen
                    | ErrorCode::ReadOnly
            )
        );
        if full {
            return Problem::new(ProblemCode::WriteFailed, "cannot write temporary files of the query")
                .cause(what)
                .hint(format!(
                    "free some space in the folder for temporary files, or choose another one with {WORK_DIR}"
                ));
        }
        let message = format!("{} failed while it ran: {what}", self.text.setting);
        Problem::new(ProblemCode::QueryFailed, message)
            .hint("correct the query, or exclude the rows that it fails on with `WHERE`")
    }
}

/// The hint if nothing more is known.
fn general_hint() -> String {
    format!(
        "the dialect is that of DuckDB; see `docs/sql.md` for what a query can use, or run it in DuckDB \
         itself with {duckdb}",
        duckdb = SQL_ENGINE.with_value("duckdb")
    )
}

/// The query is rejected.
pub(crate) fn refusal_problem(text: &QueryText, refusal: &QueryRefusal) -> Problem {
    let place = refusal.place.0.and_then(|location| place(&text.text, location)).unwrap_or_default();
    let message = format!("{} cannot be run: {}{place}", text.setting, refusal.message);
    let hint = refusal.hint.clone().unwrap_or_else(general_hint);
    Problem::new(ProblemCode::InvalidQuery, message).hint(hint)
}

/// The query has no result for some value.
pub(crate) fn value_problem(text: &QueryText, failure: &EvaluationFailure) -> Problem {
    let place = failure.place.0.and_then(|location| place(&text.text, location)).unwrap_or_default();
    let message = format!("{} failed while it ran: {}{place}", text.setting, failure.message);
    let hint = failure.hint.unwrap_or("correct the query, or exclude the rows that it fails on with `WHERE`");
    Problem::new(ProblemCode::QueryFailed, message).hint(hint)
}

/// Two columns of the result have the same name.
pub(crate) fn duplicate_column_problem(text: &QueryText, name: &str) -> Problem {
    let message = format!("{} returns two columns with the name `{name}`", text.setting);
    Problem::new(ProblemCode::InvalidQuery, message)
        .hint(format!("rename one of them with `AS`, such as `… AS \"{name}_2\"`"))
}

/// The message of SQLite.
fn readable_message(error: &Error) -> String {
    match error {
        Error::SqlInputError { msg, .. } => msg.clone(),
        Error::SqliteFailure(_, Some(message)) => message.clone(),
        Error::SqliteFailure(error, None) => error.to_string(),
        other => other.to_string(),
    }
}

/// The line of the query that contains a position, with a mark under the position.
fn place(sql: &str, location: Location) -> Option<String> {
    let line = sql.lines().nth(usize::try_from(location.line).ok()?.checked_sub(1)?)?;
    let column = usize::try_from(location.column).ok()?.checked_sub(1)?;
    if column > line.chars().count() {
        return None;
    }
    let from = column.saturating_sub(SHOWN);
    let last = from + 2 * SHOWN - 1;
    let is_longer = line.chars().nth(last + 1).is_some();
    let shown = line.chars().enumerate().skip(from).take(2 * SHOWN).map(|(at, character)| match character {
        _ if at == from && from > 0 || at == last && is_longer => '…',
        character if character.is_control() => ' ',
        character => character,
    });
    let shown: String = shown.collect();
    Some(format!("\n    {shown}\n    {}^", " ".repeat(column - from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_marked_in_its_line() {
        let place = |sql: &str, line, column| place(sql, Location { line, column });
        assert_eq!(place("SELECT a\nFORM x", 2, 1).unwrap(), "\n    FORM x\n    ^");
        assert_eq!(place("SELECT 'é', b", 1, 13).unwrap(), "\n    SELECT 'é', b\n                ^");
        assert_eq!(place("\tx", 1, 2).unwrap(), "\n     x\n     ^");
        assert_eq!(place("x", 1, 5), None);
        let long = format!("{}x{}", "a".repeat(500), "b".repeat(500));
        let shown = place(&long, 1, 501).unwrap();
        let excerpt = shown.lines().nth(1).unwrap().trim();
        assert_eq!(excerpt.chars().count(), 120);
        assert!(excerpt.starts_with("…a") && excerpt.ends_with("b…"), "{excerpt}");
        assert_eq!(shown.lines().nth(2).unwrap().len(), 65);
    }
}
