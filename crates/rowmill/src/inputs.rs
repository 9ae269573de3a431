//! The input of a run: downloaded, opened, and narrowed by the query.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_data::{
    DuckDbInput, FetchEvent, FetchPurpose, Fetcher, InputLocation, InputSpec, SqlEngine, SqlSettings,
    WantedColumn, check_columns, column_checking_dataset, duckdb_dataset, fetch_to_disk, find_empty_columns,
    local_input_files, open_dataset, select_columns, spool_input, sql_dataset, where_dataset,
};
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::{ATTACH, COLUMNS, ID_FIELD, SQL, SQL_ENGINE};
use rowmill_types::{DiagnosticText, Problem, ProblemCode};

use crate::attachments::must_scan_rows;
use crate::control::{RunControl, RunNotice};
use crate::environment::RunEnvironment;
use crate::fetch_notices::fetch_progress_notices;
use crate::query_recording::{QueryRecording, record_query_rows};
use crate::spec::{InputQuery, RunSpec};

/// Sends a notice to the user.
pub(crate) type WarnFn = Arc<dyn Fn(DiagnosticText) + Send + Sync>;

/// Sends warnings to the observer of the run.
pub(crate) fn warn_fn(control: &RunControl) -> WarnFn {
    let notice = Arc::clone(&control.notice);
    Arc::new(move |text| notice(RunNotice::warning(text)))
}

/// Downloads the input of a run if it is remote.
pub(crate) async fn fetch(spec: &mut RunSpec, control: &RunControl) -> Result<(), Problem> {
    let purpose = if spec.query.sql.is_some() { FetchPurpose::Sql } else { FetchPurpose::Rows };
    bring_input(&mut spec.input.location, purpose, &fetch_progress_notices(control), &control.environment)
        .await
}

/// Downloads an input if it is remote.
pub(crate) async fn bring_input(
    location: &mut InputLocation,
    purpose: FetchPurpose,
    reported: &(dyn Fn(FetchEvent) + Send + Sync),
    environment: &RunEnvironment,
) -> Result<(), Problem> {
    let (settings, http) = (environment.fetch_settings(), environment.http_client());
    *location =
        fetch_to_disk(location, purpose, &Fetcher { settings: &settings, http: &http, on_event: reported })
            .await?;
    Ok(())
}

/// An input that is open.
pub(crate) struct OpenedInput {
    /// All rows of the input.
    pub(crate) input: Arc<dyn Dataset>,
    /// The rows that the query returns.
    pub(crate) rows: Arc<dyn Dataset>,
    pub(crate) recording: QueryRecording,
}

/// Opens the input, which must have the wanted columns. A stream that must be read more than once is
/// copied to disk in the work folder, and so are the rows of a query that may return others each time.
pub(crate) fn open(
    spec: &RunSpec,
    folder: &Path,
    (warn, environment): (&WarnFn, &RunEnvironment),
    wanted: &[WantedColumn],
) -> Result<OpenedInput, Problem> {
    let mut input = open_dataset(&spec.input)?;
    let reads_twice = spec.selection.sample.is_some() || !spec.query.is_empty();
    if !input.is_rereadable() && (reads_twice || must_scan_rows(spec, folder)) {
        input = spool_input(&spec.input, folder, WorkFolder::SPOOL)?;
    }
    let documents = input.default_id_field().is_some();
    let (narrowed, recording) = narrowed(Arc::clone(&input), spec, folder, (warn, environment))?;
    if !narrowed.is_rereadable() {
        let rows = column_checking_dataset(narrowed, wanted.to_vec());
        return Ok(OpenedInput { input, rows, recording });
    }
    match &spec.query {
        query if query.sql.is_some() => check_columns(&*narrowed, wanted)?,
        // Rows excluded by `--where` have the same columns, so they are not searched for others.
        query if query.columns.is_empty() => check_columns(&*input, wanted)?,
        query => check_columns(&*select_columns(Arc::clone(&input), &query.columns)?, wanted)?,
    }
    if let Some(text) = input.read_notice().filter(|_| !documents) {
        warn(text);
    }
    if spec.query.is_empty() && !documents {
        find_empty_columns(&*narrowed, wanted)?.into_iter().for_each(|text| warn(text.into()));
    }
    if documents && narrowed.default_id_field().is_none() {
        check_documents(spec)?;
    }
    Ok(OpenedInput { input, rows: narrowed, recording })
}

/// All rows with numbers, out of those that the run can see.
pub(crate) fn all_rows(spec: &RunSpec, seen: &Arc<dyn Dataset>) -> Result<Arc<dyn Dataset>, Problem> {
    let query = &spec.query;
    let is_all = query.sql.is_some() || query.condition.is_none() && query.columns.is_empty();
    if is_all { Ok(Arc::clone(seen)) } else { open_dataset(&spec.input) }
}

/// Checks that rows keep the path of their document, which must not be silently left out of a request.
fn check_documents(spec: &RunSpec) -> Result<(), Problem> {
    let (message, hint) = match (&spec.query.sql, spec.files.attach.is_empty()) {
        (None, _) => (
            format!("{COLUMNS} omits the columns that identify the file of a row"),
            "keep `path` and `digest` among the columns".to_owned(),
        ),
        (Some(_), true) => (
            format!("the result of {SQL} over documents is rows without files"),
            format!("select `path` and add {attach} to send the files", attach = ATTACH.with_value("path")),
        ),
        (Some(_), false) => return Ok(()),
    };
    Err(Problem::new(ProblemCode::Usage, message).hint(hint))
}

/// The rows and columns that a query leaves of the input.
fn narrowed(
    input: Arc<dyn Dataset>,
    spec: &RunSpec,
    folder: &Path,
    (warn, environment): (&WarnFn, &RunEnvironment),
) -> Result<(Arc<dyn Dataset>, QueryRecording), Problem> {
    let query = &spec.query;
    if query.is_empty() {
        return Ok((input, QueryRecording::Unneeded));
    }
    // Sorted data and copies of a query go where the run keeps its other files.
    if query.sql.is_some() && spec.id_field.is_none() {
        warn(
            format!(
                "rows are numbered by their position in the result of {SQL}; use {ID_FIELD} so that a resume \
                 can match them even if the input changes"
            )
            .into(),
        );
    }
    let narrowing = InputQueryContext { temp: folder, warn, environment };
    let chosen = apply_row_query(input, query, &spec.input, &narrowing)?;
    let (chosen, recording) = record_query_rows(spec, folder, warn, chosen)?;
    Ok((apply_column_choice(chosen, query)?, recording))
}

/// Where a query keeps its files, and who is notified of what it cannot see.
pub(crate) struct InputQueryContext<'n> {
    pub(crate) temp: &'n Path,
    pub(crate) warn: &'n WarnFn,
    pub(crate) environment: &'n RunEnvironment,
}

/// The rows of an input that a query returns, or that satisfy its condition.
pub(crate) fn apply_row_query(
    input: Arc<dyn Dataset>,
    query: &InputQuery,
    place: &InputSpec,
    InputQueryContext { temp, warn, environment }: &InputQueryContext<'_>,
) -> Result<Arc<dyn Dataset>, Problem> {
    let settings = SqlSettings { temp, types: &query.types };
    match (&query.sql, query.engine, &query.condition) {
        (Some(sql), SqlEngine::BuiltIn, _) => sql_dataset(input, sql, &settings, Arc::clone(warn)),
        (Some(sql), SqlEngine::DuckDb, _) => {
            let files = local_input_files(place)?.ok_or_else(|| {
                Problem::new(
                    ProblemCode::NoSqlEngine,
                    format!(
                        "{sql_engine} needs an input that consists of files",
                        sql_engine = SQL_ENGINE.with_value("duckdb")
                    ),
                )
                .hint("write the rows to a file first, or omit the flag")
            })?;
            let read = DuckDbInput {
                files: &files,
                delimiter: place.delimiter,
                types: &query.types,
                variables: &environment.variables(),
            };
            duckdb_dataset(input, &read, sql)
        }
        (None, _, Some(condition)) => where_dataset(input, condition, &settings, Arc::clone(warn)),
        (None, _, None) => Ok(input),
    }
}

/// The fields of rows that a query selects.
pub(crate) fn apply_column_choice(
    rows: Arc<dyn Dataset>,
    query: &InputQuery,
) -> Result<Arc<dyn Dataset>, Problem> {
    if query.columns.is_empty() { Ok(rows) } else { select_columns(rows, &query.columns) }
}
