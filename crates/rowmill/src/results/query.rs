//! SQL queries over the results of a run.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::ReadLimit;
use rowmill_data::output::open_result_rows;
use rowmill_data::{SqlSettings, sql_dataset};
use rowmill_types::{DiagnosticText, Problem, ProblemCode, Row};

use super::envelopes_path;
use crate::environment::RunEnvironment;

/// The maximum size of one read.
const ROOM: ReadLimit = ReadLimit { rows: 1024, bytes: 1 << 20 };

/// What a query needs besides its text.
#[derive(Clone)]
pub struct QueryContext {
    /// Receives notices about what the query cannot see.
    pub notice: Arc<dyn Fn(DiagnosticText) + Send + Sync>,
    /// Where the folder for temporary files is looked up.
    pub environment: RunEnvironment,
}

impl fmt::Debug for QueryContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("QuerySurroundings").field("environment", &self.environment).finish_non_exhaustive()
    }
}

/// Runs a query over the results of a run and passes its rows to `saw` until that returns `false`.
///
/// The view `input` has the columns `id`, `row_number`, `ok`, `error_type`, `error_message`, those of
/// the results, and `input` if the run kept it. What the query cannot see is reported as a notice.
///
/// # Errors
///
/// There is no such run, or the query is wrong or fails.
pub fn query_results(
    output: &Path,
    sql: &str,
    QueryContext { notice, environment }: QueryContext,
    mut saw: impl FnMut(&Row) -> bool,
) -> Result<(), Problem> {
    let temp = tempfile::tempdir_in(environment.temp_folder()).map_err(|error| {
        Problem::new(ProblemCode::WriteFailed, "cannot create a temporary folder for the query").cause(error)
    })?;
    let settings = SqlSettings { temp: temp.path(), types: &[] };
    let rows = sql_dataset(open_result_rows(&envelopes_path(output)?)?, sql, &settings, notice)?;
    let mut source = rows.open()?;
    let mut batch = Vec::new();
    loop {
        let more = source.read(&mut batch, ROOM)?;
        // A query returns only rows, never bad ones.
        if !batch.drain(..).flatten().all(|row| saw(&row)) || !more {
            return Ok(());
        }
    }
}
