//! What is wrong with a query, with the place and with what to do.

use rowmill_types::{Problem, ProblemCode};
use rusqlite::{Error, ErrorCode};

use crate::advice;
use crate::query::QueryText;
use crate::table::NamedTable;
use crate::vtab::ScanProblem;

/// How much of a long line is shown before and behind the place.
const SHOWN: usize = 60;

/// Makes problems of what SQLite reports.
pub(crate) struct Failures<'q> {
    pub(crate) text: &'q QueryText,
    pub(crate) tables: &'q [NamedTable],
    pub(crate) problem: &'q ScanProblem,
}

impl Failures<'_> {
    /// The connection could not be made ready.
    pub(crate) fn setting_up(&self, error: Error) -> Problem {
        if let Error::SqlInputError { .. } | Error::ModuleError(_) = &error {
            return self.preparing(error);
        }
        Problem::new(ProblemCode::WriteFailed, "the query cannot be made ready")
            .cause(spoken(&error).0)
            .hint("check that the folder for temporary files can be written to")
    }

    /// The query is wrong.
    pub(crate) fn preparing(&self, error: Error) -> Problem {
        if let Some(problem) = self.problem.take() {
            return problem;
        }
        if let Error::MultipleStatement = error {
            return not_one_select(self.text);
        }
        if let Error::InvalidParameterCount(..) = error {
            let message = format!("`{}` has places for values, such as `?`", self.text.flag);
            return Problem::new(ProblemCode::InvalidQuery, message).hint("write the values into the query");
        }
        let (what, offset) = spoken(&error);
        let place = offset
            .and_then(|offset| offset.checked_sub(self.text.before.len()))
            .and_then(|offset| place(&self.text.text, offset))
            .unwrap_or_default();
        let message = format!("`{}` cannot be run: {what}{place}", self.text.flag);
        let problem = Problem::new(ProblemCode::InvalidQuery, message);
        match advice::for_wrong_query(&what, self.tables) {
            Some(hint) => problem.hint(hint),
            None => {
                problem.hint("the dialect is that of SQLite; `docs/sql.md` shows what differs from DuckDB")
            }
        }
    }

    /// The query would do what it may not.
    pub(crate) fn refused(&self, what: &str) -> Problem {
        Problem::new(ProblemCode::InvalidQuery, format!("`{}` is refused: {what}", self.text.flag))
            .hint("give one `SELECT` over the table `input`")
    }

    /// The query failed while it ran.
    pub(crate) fn running(&self, error: Error) -> Problem {
        if let Some(problem) = self.problem.take() {
            return problem;
        }
        let (what, _) = spoken(&error);
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
            return Problem::new(ProblemCode::WriteFailed, "temporary files of the query cannot be written")
                .cause(what)
                .hint(
                    "make room in the folder for temporary files, or choose another one with `--work-dir`",
                );
        }
        let message = format!("`{}` failed while it ran: {what}", self.text.flag);
        Problem::new(ProblemCode::QueryFailed, message).hint(advice::for_failed_query(&what))
    }
}

/// The query is no query, or more than one.
pub(crate) fn not_one_select(text: &QueryText) -> Problem {
    let flag = text.flag;
    if text.before.is_empty() {
        Problem::new(ProblemCode::InvalidQuery, format!("`{flag}` must be exactly one `SELECT`"))
            .hint("write one query that begins with `SELECT`, `WITH` or `VALUES`; it can only read")
    } else {
        Problem::new(ProblemCode::InvalidQuery, format!("`{flag}` must be exactly one condition"))
            .hint("write what would stand behind `WHERE`, such as `split = 'eval' AND score > 0.5`")
    }
}

/// Two columns of the result have the same name.
pub(crate) fn duplicate(text: &QueryText, name: &str) -> Problem {
    let message = format!("`{}` gives two columns the name `{name}`", text.flag);
    Problem::new(ProblemCode::InvalidQuery, message)
        .hint(format!("name them apart with `AS`, such as `… AS \"{name}_2\"`"))
}

/// What SQLite says, and where in the text it points.
fn spoken(error: &Error) -> (String, Option<usize>) {
    match error {
        Error::SqlInputError { msg, offset, .. } => (msg.clone(), usize::try_from(*offset).ok()),
        Error::SqliteFailure(_, Some(message)) => (message.clone(), None),
        Error::SqliteFailure(error, None) => (error.to_string(), None),
        Error::NulError(_) => ("it holds a NUL character".to_owned(), None),
        other => (other.to_string(), None),
    }
}

/// The line of the query that a place is in, with a mark under the place.
fn place(sql: &str, offset: usize) -> Option<String> {
    let before = sql.get(..offset)?;
    let start = before.rfind('\n').map_or(0, |found| found + 1);
    let line = sql.get(start..)?.lines().next()?;
    let column = sql.get(start..offset)?.chars().count();
    let from = column.saturating_sub(SHOWN);
    let shown: String = line
        .chars()
        .skip(from)
        .take(2 * SHOWN)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    Some(format!("\n    {shown}\n    {}^", " ".repeat(column - from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_marked_in_its_line() {
        assert_eq!(place("SELECT a\nFORM x", 9).unwrap(), "\n    FORM x\n    ^");
        assert_eq!(place("SELECT 'é', b", 13).unwrap(), "\n    SELECT 'é', b\n                ^");
        assert_eq!(place("\tx", 1).unwrap(), "\n     x\n     ^");
        assert_eq!(place("x", 5), None);
        let long = format!("{}x{}", "a".repeat(500), "b".repeat(500));
        let shown = place(&long, 500).unwrap();
        assert_eq!(shown.lines().nth(1).unwrap().trim().len(), 120);
        assert_eq!(shown.lines().nth(2).unwrap().len(), 65);
    }
}
