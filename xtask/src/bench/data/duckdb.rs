//! DuckDB from the Python package, in its own process.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TaskFailure;
use crate::bench::context::BenchContext;

/// The version that is installed for the tests.
pub(in crate::bench) fn version(root: &Path) -> Result<String, TaskFailure> {
    let found = Command::new(python(root)).args(["-c", "import duckdb; print(duckdb.__version__)"]).output();
    match found {
        Ok(output) if output.status.success() => {
            Ok(format!("DuckDB {} (Python package)", String::from_utf8_lossy(&output.stdout).trim()))
        }
        _ => Err(TaskFailure::new("DuckDB is not there: run `bash scripts/prepare-python`")),
    }
}

fn python(root: &Path) -> PathBuf {
    root.join(".venv/bin/python")
}

/// A command that makes DuckDB read every value of every column.
pub(super) fn reading(context: &BenchContext, file: &str) -> Command {
    // DuckDB would not decode columns that are not used; counting is the least work.
    script(context, "SELECT count(*), COUNT(COLUMNS(*)) FROM $1", file, "print(found.fetchone()[0])")
}

/// A command that passes every row from DuckDB to Python, as a tool written in Python receives them.
pub(super) fn handing_over(context: &BenchContext, file: &str) -> Command {
    let count = "rows = 0\nwhile batch := found.fetchmany(10000): rows += len(batch)\nprint(rows)";
    script(context, "SELECT * FROM $1", file, count)
}

/// A command that runs a query over the view `input` and counts the result rows.
pub(super) fn query(context: &BenchContext, query: &str, file: &str) -> Command {
    let count = "rows = 0\nwhile batch := found.fetchmany(10000): rows += len(batch)\nprint(rows)";
    script(context, &format!("WITH input AS (SELECT * FROM $1) {query}"), file, count)
}

fn script(context: &BenchContext, query: &str, file: &str, rest: &str) -> Command {
    let query = query.replace("$1", &format!("'{file}'"));
    let mut command = Command::new(python(&context.root));
    command.current_dir(&context.folder).arg("-c");
    // Its progress output would go to standard output, among the numbers.
    let open = "import duckdb\ndb = duckdb.connect()\ndb.execute('SET enable_progress_bar = false')";
    command.arg(format!("{open}\nfound = db.execute({query:?})\n{rest}"));
    command
}
