//! `--sql-engine duckdb`: the query runs in the user's own DuckDB, and its results become rows.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rowmill_core::ports::{Dataset, InputIdentity, RowSource};
use rowmill_types::settings::{SQL, SQL_ENGINE};
use rowmill_types::{DiagnosticText, Problem, ProblemCode, Row};

use super::duckdb_environment::variables_for_duckdb;
use super::duckdb_view::view_statement;
use super::handoff::{RowHandoff, ThreadRowSource};
use crate::DuckDbInput;
use crate::csv::DelimiterChoice;

/// Runs statements with the Python package: the first prepares, the second returns rows.
const PROGRAM: &str = "import sys, duckdb\nconnection = duckdb.connect()\nfor statement in sys.argv[1:]:\n    connection.execute(statement)\n";

/// How much of DuckDB's error output is read.
const SHOWN: u64 = 4096;

/// A way to DuckDB, and the only variables that it sees.
#[derive(Debug, Clone)]
struct FoundDuckDb {
    access: DuckDbAccess,
    variables: Vec<(OsString, OsString)>,
}

/// The ways to run DuckDB, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DuckDbAccess {
    Program,
    PythonPackage,
}

/// The rows that the user's own DuckDB returns for a query over the table `input`. DuckDB reads the files
/// itself.
///
/// # Errors
///
/// DuckDB was not found, it cannot read files of this format, or it rejects the query.
pub fn duckdb_dataset(
    input: Arc<dyn Dataset>,
    read: &DuckDbInput<'_>,
    sql: &str,
) -> Result<Arc<dyn Dataset>, Problem> {
    let found = FoundDuckDb::look_for(variables_for_duckdb(read.variables))?;
    let delimiters = DelimiterChoice::new(read.delimiter);
    let view = view_statement(read, &delimiters)?;
    let query = sql.trim().trim_end_matches(';').to_owned();
    let dataset = DuckDbDataset { input, found, view, query, delimiters };
    dataset.check()?;
    Ok(Arc::new(dataset))
}

#[derive(Debug, Clone)]
struct DuckDbDataset {
    input: Arc<dyn Dataset>,
    found: FoundDuckDb,
    /// The statement that makes the view `input`.
    view: String,
    query: String,
    /// The delimiters of the files, and notices about them.
    delimiters: DelimiterChoice,
}

impl FoundDuckDb {
    /// The program `duckdb`, or the Python package.
    fn look_for(variables: Vec<(OsString, OsString)>) -> Result<Self, Problem> {
        let answers = |access, arguments: &[&str]| {
            let mut command = access_command(access, &variables);
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let access = if answers(DuckDbAccess::Program, &["--version"]) {
            DuckDbAccess::Program
        } else if answers(DuckDbAccess::PythonPackage, &["-c", "import duckdb"]) {
            DuckDbAccess::PythonPackage
        } else {
            let message = format!(
                "{sql_engine} found neither the program `duckdb` nor the package `duckdb` of `python3`",
                sql_engine = SQL_ENGINE.with_value("duckdb")
            );
            return Err(Problem::new(ProblemCode::NoSqlEngine, message).hint(
                "install one, such as `pip install duckdb`, or omit the flag to use the built-in engine",
            ));
        };
        Ok(Self { access, variables })
    }

    /// DuckDB with two statements to run.
    fn command(&self, first: &str, last: &str) -> Command {
        let mut command = access_command(self.access, &self.variables);
        match self.access {
            DuckDbAccess::Program => command.args(["-bail", "-c", first, "-c", last]),
            DuckDbAccess::PythonPackage => command.args(["-c", PROGRAM, first, last]),
        };
        command
    }
}

/// The program that is started, with these variables and no others.
fn access_command(access: DuckDbAccess, variables: &[(OsString, OsString)]) -> Command {
    let mut command = Command::new(match access {
        DuckDbAccess::Program => "duckdb",
        DuckDbAccess::PythonPackage => "python3",
    });
    command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

impl DuckDbDataset {
    /// A command that runs statements in DuckDB; the results arrive on its standard output.
    fn command(&self, last: &str) -> Command {
        self.found.command(&self.view, last)
    }

    /// Checks whether DuckDB accepts the query.
    fn check(&self) -> Result<(), Problem> {
        let output = self
            .command(&format!("EXPLAIN {}", self.query))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| not_started(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let messages = String::from_utf8_lossy(&output.stderr);
        Err(Problem::new(
            ProblemCode::InvalidQuery,
            format!("{SQL} cannot be run: {}", strip_traceback(&messages)),
        )
        .hint("correct the query; it runs in your own DuckDB"))
    }

    fn run(&self, handoff: &RowHandoff) -> Result<(), Problem> {
        let copy = format!("COPY ({}\n) TO '/dev/stdout' (FORMAT json)", self.query);
        let mut command = self.command(&copy);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = RunningDuckDb(command.spawn().map_err(|error| not_started(&error))?);
        let Some(results) = running.0.stdout.take() else { return Ok(()) };
        let mut number = 0;
        for line in BufReader::new(results).lines() {
            let line = line.map_err(|error| {
                Problem::new(ProblemCode::QueryFailed, "the results of DuckDB cannot be read").cause(error)
            })?;
            number += 1;
            if !handoff.push(Row::parse(number, quoted_numbers(line))) {
                return Ok(());
            }
        }
        running.finish()
    }
}

/// A running DuckDB; it is killed when the reader of its results is dropped.
struct RunningDuckDb(Child);

impl RunningDuckDb {
    fn finish(&mut self) -> Result<(), Problem> {
        let mut reported = Vec::new();
        if let Some(errors) = self.0.stderr.take() {
            // An incomplete message is shown as far as it could be read.
            let _read = errors.take(SHOWN).read_to_end(&mut reported);
        }
        let status = self.0.wait().map_err(|error| not_started(&error))?;
        if status.success() {
            return Ok(());
        }
        let reported = String::from_utf8_lossy(&reported);
        Err(Problem::new(
            ProblemCode::QueryFailed,
            format!("{SQL} failed while it ran: {}", strip_traceback(&reported)),
        )
        .hint("correct the query; it runs in your own DuckDB"))
    }
}

impl Drop for RunningDuckDb {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        let _ended = self.0.kill();
        let _waited = self.0.wait();
    }
}

fn not_started(error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::NoSqlEngine, "cannot start DuckDB").cause(error)
}

/// A row with `NaN` and `Infinity` in quotes, as the built-in engine writes them: DuckDB writes them as words
/// that are not valid JSON.
fn quoted_numbers(line: String) -> String {
    if !line.contains("NaN") && !line.contains("Infinity") {
        return line;
    }
    let mut written = String::with_capacity(line.len() + 8);
    let (mut rest, mut is_text) = (line.as_str(), false);
    while let Some(first) = rest.chars().next() {
        let word =
            ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| !is_text && rest.starts_with(word));
        let length = match (word, first) {
            (Some(word), _) => {
                written.extend(["\"", word, "\""]);
                word.len()
            }
            (None, '\\') => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            (None, other) => other.len_utf8(),
        };
        if word.is_none() {
            is_text ^= first == '"';
            written.push_str(rest.get(..length).unwrap_or_default());
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    written
}

/// The error message without its location in a program.
fn strip_traceback(message: &str) -> String {
    let lines: Vec<_> = message.lines().collect();
    let start = lines.iter().rposition(|line| line.contains("Error")).unwrap_or(0);
    let text = lines.get(start..).unwrap_or_default().join("\n    ");
    let text = text.strip_prefix("_duckdb.").unwrap_or(&text).trim().to_owned();
    if text.is_empty() { "DuckDB exited without a message".to_owned() } else { text }
}

impl Dataset for DuckDbDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        let handoff = Arc::new(RowHandoff::default());
        let (results, dataset) = (handoff.clone(), self.clone());
        Ok(Box::new(ThreadRowSource::start(handoff, move || dataset.run(&results))?))
    }

    fn is_rereadable(&self) -> bool {
        true
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.input.identity()
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.input.read_notice().or_else(|| self.delimiters.notice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_numbers_are_quoted_where_they_are_no_text_already() {
        for (line, expected) in [
            (r#"{"a":NaN,"b":[-Infinity,1]}"#, r#"{"a":"NaN","b":["-Infinity",1]}"#),
            (r#"{"NaN":"Infinity \" NaN","é":Infinity}"#, r#"{"NaN":"Infinity \" NaN","é":"Infinity"}"#),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(quoted_numbers(line.to_owned()), expected);
        }
    }
}
