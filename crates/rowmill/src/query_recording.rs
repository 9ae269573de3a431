//! Records the rows of a query that may return others when it is repeated, in the work folder, so that
//! a resume has the same rows.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_core::run_header::RunHeader;
use rowmill_data::{
    SqlEngine, is_deterministic_condition, is_deterministic_query, open_recorded_rows, record_rows_in_file,
};
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::{OVERWRITE, WORK_DIR};
use rowmill_types::{Problem, ProblemCode};
use tempfile::TempPath;

use crate::inputs::WarnFn;
use crate::run_storage::RunStorage;
use crate::spec::{InputQuery, RunSpec};

/// Whether the rows of a run are recorded.
#[derive(Debug, Default)]
pub(crate) enum QueryRecording {
    /// Not recorded, because every read returns the same rows.
    #[default]
    Unneeded,
    /// Recorded by an earlier part of the run, in the file of this name.
    Found(String),
    /// Recorded for this run, in a file that gets this name once it is persisted. Until then the file
    /// is temporary and is deleted with this value.
    New(String, TempPath),
}

impl QueryRecording {
    /// Adds the name of the file to the header of the run.
    pub(crate) fn name_in_header(&self, header: RunHeader) -> RunHeader {
        let recorded_rows = match self {
            Self::Unneeded => None,
            Self::Found(name) | Self::New(name, _) => Some(name.clone()),
        };
        RunHeader { recorded_rows, ..header }
    }

    /// The header with the identity of the recorded input: what an earlier part of the run recorded
    /// belongs to the input as it was then, even if it has changed since.
    pub(crate) fn with_input_of(&self, before: Option<&RunHeader>, mut now: RunHeader) -> RunHeader {
        if let (Self::Found(_), Some(before)) = (self, before) {
            now.fingerprint.input = before.fingerprint.input.clone();
            now.input.clone_from(&before.input);
        }
        now
    }

    /// Moves the file to the path that the header will name.
    pub(crate) fn install(self, folder: &WorkFolder) -> Result<(), Problem> {
        let Self::New(name, path) = self else { return Ok(()) };
        folder.install_recorded_rows(&path, &name)?;
        // The file has its permanent name now and must not be deleted.
        drop(path.keep());
        Ok(())
    }
}

/// The rows that `given` returns now, or returned when the run started, if the query is not repeatable.
pub(crate) fn record_query_rows(
    spec: &RunSpec,
    folder: &Path,
    tell: &WarnFn,
    given: Arc<dyn Dataset>,
) -> Result<(Arc<dyn Dataset>, QueryRecording), Problem> {
    let Some(begins) = name_begins(spec) else { return Ok((given, QueryRecording::Unneeded)) };
    if let Some((file, name)) = recorded_before(spec, &begins) {
        tell(
            format!(
                "using the query results from when the run was started, because the query may return other \
                 rows now; use {OVERWRITE} to start over with current ones"
            )
            .into(),
        );
        return Ok((open_recorded_rows(given, file), QueryRecording::Found(name)));
    }
    let (begin, end) = WorkFolder::SPOOL;
    // The rows may be private: nobody else may read the file.
    let spool = tempfile::Builder::new().prefix(begin).suffix(end).tempfile_in(folder).map_err(|error| {
        let message = format!("cannot record the query results in `{}`", folder.display());
        Problem::new(ProblemCode::WriteFailed, message)
            .cause(error)
            .hint(format!("choose another folder with {WORK_DIR}"))
    })?;
    let (file, path) = spool.into_parts();
    // The name is unique, so that no run can mistake the rows of another run for its own.
    let name = format!("{begins}-{:x}.jsonl", jiff::Timestamp::now().as_nanosecond());
    let rows = record_rows_in_file(given, file, &path)?;
    Ok((rows, QueryRecording::New(name, path)))
}

/// The start of the file name for the rows of the query, if they must be recorded.
fn name_begins(spec: &RunSpec) -> Option<String> {
    let InputQuery { sql, condition, engine, .. } = &spec.query;
    let query = match (sql, condition) {
        // DuckDB uses many threads, so not even a plain query is sure to return rows in the same order.
        (Some(sql), _) if *engine == SqlEngine::DuckDb || !is_deterministic_query(sql) => {
            format!("SQL {sql}")
        }
        (None, Some(condition)) if !is_deterministic_condition(condition) => format!("WHERE {condition}"),
        _ => return None,
    };
    let settings = spec.query.settings_text();
    Some(WorkFolder::recorded_rows_prefix(&format!("{query}{settings}\n{}", spec.input.location.name())))
}

/// The file in which an earlier part of the run recorded the rows of the same query.
fn recorded_before(spec: &RunSpec, begins: &str) -> Option<(File, String)> {
    let RunStorage { store, folder, .. } =
        RunStorage::look_at(&spec.work_folder().filter(|_| spec.existing.resumes())?);
    // A header that cannot be read is told of when the run begins, and one that is lost names nothing.
    let name = match folder.has_lost_header() {
        true => folder.newest_recorded_rows_name(begins)?,
        false => store.header().ok().flatten()?.recorded_rows.filter(|name| name.starts_with(begins))?,
    };
    let file = File::open(folder.path().join(&name)).ok()?;
    Some((file, name))
}
