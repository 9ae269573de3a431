//! The input of a run: downloaded, opened, and narrowed by the query.

use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_data::{
    DuckDbInput, FetchEvent, Fetcher, InputSpec, Location, Purpose, SqlEngine, SqlSettings, WantedColumn,
    bring, check_columns, checked_stream, columns_dataset, dataset, duckdb_dataset, empty_columns,
    local_files, spool, sql_dataset, where_dataset,
};
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::{ATTACH, COLUMNS, ID_FIELD, SQL, SQL_ENGINE};
use rowmill_types::{Problem, ProblemCode, Words};

use crate::control::{Control, Notice};
use crate::environment::Environment;
use crate::fetching::fetch_notices;
use crate::files::must_look_through;
use crate::recorded::{Recording, recorded};
use crate::spec::{Query, RunSpec};

/// Sends a notice to the user.
pub(crate) type Tell = Arc<dyn Fn(Words) + Send + Sync>;

/// Sends warnings to the observer of the run.
pub(crate) fn warnings(control: &Control) -> Tell {
    let notice = Arc::clone(&control.notice);
    Arc::new(move |text| notice(Notice::warning(text)))
}

/// Downloads the input of a run if it is remote.
pub(crate) async fn fetch(spec: &mut RunSpec, control: &Control) -> Result<(), Problem> {
    let purpose = if spec.query.sql.is_some() { Purpose::Sql } else { Purpose::Rows };
    bring_input(&mut spec.input.location, purpose, &fetch_notices(control), &control.environment).await
}

/// Downloads an input if it is remote.
pub(crate) async fn bring_input(
    location: &mut Location,
    purpose: Purpose,
    told: &(dyn Fn(FetchEvent) + Send + Sync),
    environment: &Environment,
) -> Result<(), Problem> {
    let (settings, http) = (environment.fetch_settings(), environment.http_client());
    *location = bring(location, purpose, &Fetcher { settings: &settings, http: &http, told }).await?;
    Ok(())
}

/// An input that is open.
pub(crate) struct OpenedInput {
    /// All rows of the input.
    pub(crate) input: Arc<dyn Dataset>,
    /// The rows that the query returns.
    pub(crate) rows: Arc<dyn Dataset>,
    pub(crate) recording: Recording,
}

/// Opens the input, which must have the wanted columns. A stream that must be read more than once is
/// copied to disk in the work folder, and so are the rows of a query that may return others each time.
pub(crate) fn open(
    spec: &RunSpec,
    folder: &Path,
    (warn, environment): (&Tell, &Environment),
    wanted: &[WantedColumn],
) -> Result<OpenedInput, Problem> {
    let mut input = dataset(&spec.input)?;
    let reads_twice = spec.selection.sample.is_some() || !spec.query.is_empty();
    if !input.rereadable() && (reads_twice || must_look_through(spec, folder)) {
        input = spool(&spec.input, folder, WorkFolder::SPOOL)?;
    }
    let documents = input.own_id().is_some();
    let (narrowed, recording) = narrowed(Arc::clone(&input), spec, folder, (warn, environment))?;
    if !narrowed.rereadable() {
        let rows = checked_stream(narrowed, wanted.to_vec());
        return Ok(OpenedInput { input, rows, recording });
    }
    match &spec.query {
        query if query.sql.is_some() => check_columns(&*narrowed, wanted)?,
        // Rows excluded by `--where` have the same columns, so they are not searched for others.
        query if query.columns.is_empty() => check_columns(&*input, wanted)?,
        query => check_columns(&*columns_dataset(Arc::clone(&input), &query.columns)?, wanted)?,
    }
    if let Some(text) = input.notice().filter(|_| !documents) {
        warn(text);
    }
    if spec.query.is_empty() && !documents {
        empty_columns(&*narrowed, wanted)?.into_iter().for_each(|text| warn(text.into()));
    }
    if documents && narrowed.own_id().is_none() {
        check_documents(spec)?;
    }
    Ok(OpenedInput { input, rows: narrowed, recording })
}

/// All rows with numbers, out of those that the run can see.
pub(crate) fn all_rows(spec: &RunSpec, seen: &Arc<dyn Dataset>) -> Result<Arc<dyn Dataset>, Problem> {
    let query = &spec.query;
    let is_all = query.sql.is_some() || query.condition.is_none() && query.columns.is_empty();
    if is_all { Ok(Arc::clone(seen)) } else { dataset(&spec.input) }
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
            format!("select `path` and add {attach} to send the files", attach = ATTACH.to("path")),
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
    (warn, environment): (&Tell, &Environment),
) -> Result<(Arc<dyn Dataset>, Recording), Problem> {
    let query = &spec.query;
    if query.is_empty() {
        return Ok((input, Recording::Unneeded));
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
    let narrowing = Narrowing { temp: folder, warn, environment };
    let chosen = chosen_rows(input, query, &spec.input, &narrowing)?;
    let (chosen, recording) = recorded(spec, folder, warn, chosen)?;
    Ok((chosen_columns(chosen, query)?, recording))
}

/// Where a query keeps its files, and who is notified of what it cannot see.
pub(crate) struct Narrowing<'n> {
    pub(crate) temp: &'n Path,
    pub(crate) warn: &'n Tell,
    pub(crate) environment: &'n Environment,
}

/// The rows of an input that a query returns, or that satisfy its condition.
pub(crate) fn chosen_rows(
    input: Arc<dyn Dataset>,
    query: &Query,
    place: &InputSpec,
    Narrowing { temp, warn, environment }: &Narrowing<'_>,
) -> Result<Arc<dyn Dataset>, Problem> {
    let settings = SqlSettings { temp, types: &query.types };
    match (&query.sql, query.engine, &query.condition) {
        (Some(sql), SqlEngine::BuiltIn, _) => sql_dataset(input, sql, &settings, Arc::clone(warn)),
        (Some(sql), SqlEngine::DuckDb, _) => {
            let files = local_files(place)?.ok_or_else(|| {
                Problem::new(
                    ProblemCode::NoSqlEngine,
                    format!(
                        "{sql_engine} needs an input that consists of files",
                        sql_engine = SQL_ENGINE.to("duckdb")
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
pub(crate) fn chosen_columns(rows: Arc<dyn Dataset>, query: &Query) -> Result<Arc<dyn Dataset>, Problem> {
    if query.columns.is_empty() { Ok(rows) } else { columns_dataset(rows, &query.columns) }
}
