//! The input of a run: fetched, opened, and narrowed to what the run is to see.

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

/// Tells a person what they should know.
pub(crate) type Tell = Arc<dyn Fn(Words) + Send + Sync>;

/// Passes warnings on to whoever watches the run.
pub(crate) fn warnings(control: &Control) -> Tell {
    let notice = Arc::clone(&control.notice);
    Arc::new(move |text| notice(Notice::warning(text)))
}

/// Brings the input of a run onto this machine, if it is remote.
pub(crate) async fn fetch(spec: &mut RunSpec, control: &Control) -> Result<(), Problem> {
    let purpose = if spec.query.sql.is_some() { Purpose::Sql } else { Purpose::Rows };
    bring_input(&mut spec.input.location, purpose, &fetch_notices(control), &control.environment).await
}

/// Brings an input onto this machine, if it is remote.
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
    /// All rows that are in it.
    pub(crate) input: Arc<dyn Dataset>,
    /// The rows that the query gives.
    pub(crate) rows: Arc<dyn Dataset>,
    pub(crate) recording: Recording,
}

/// Opens the input, which must have the columns that are wanted. A stream that must be read more
/// than once is kept in the work folder, on disk, and so are the rows of a query that may give others
/// each time.
pub(crate) fn open(
    spec: &RunSpec,
    folder: &Path,
    warn: &Tell,
    wanted: &[WantedColumn],
) -> Result<OpenedInput, Problem> {
    let mut input = dataset(&spec.input)?;
    let reads_twice = spec.selection.sample.is_some() || !spec.query.is_empty();
    if !input.rereadable() && (reads_twice || must_look_through(spec, folder)) {
        input = spool(&spec.input, folder, WorkFolder::SPOOL)?;
    }
    let documents = input.own_id().is_some();
    let (narrowed, recording) = narrowed(Arc::clone(&input), spec, folder, warn)?;
    if !narrowed.rereadable() {
        let rows = checked_stream(narrowed, wanted.to_vec());
        return Ok(OpenedInput { input, rows, recording });
    }
    match &spec.query {
        query if query.sql.is_some() => check_columns(&*narrowed, wanted)?,
        // Rows that `--where` leaves out have the same columns, and are not searched for others.
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

/// All rows that have numbers, of those that the run is to see.
pub(crate) fn all_rows(spec: &RunSpec, seen: &Arc<dyn Dataset>) -> Result<Arc<dyn Dataset>, Problem> {
    let query = &spec.query;
    let is_all = query.sql.is_some() || query.condition.is_none() && query.columns.is_empty();
    if is_all { Ok(Arc::clone(seen)) } else { dataset(&spec.input) }
}

/// A row that has lost the path of its file cannot be sent with it, and must not be sent without.
fn check_documents(spec: &RunSpec) -> Result<(), Problem> {
    let (message, hint) = match (&spec.query.sql, spec.files.attach.is_empty()) {
        (None, _) => (
            format!("{COLUMNS} leaves out what names the file of a row"),
            "keep `path` and `digest` among the columns".to_owned(),
        ),
        (Some(_), true) => (
            format!("the result of {SQL} over documents is rows, and no file goes with them"),
            format!("select `path` and add {attach} to send the files", attach = ATTACH.to("path")),
        ),
        (Some(_), false) => return Ok(()),
    };
    Err(Problem::new(ProblemCode::Usage, message).hint(hint))
}

/// What a query leaves of the input.
fn narrowed(
    input: Arc<dyn Dataset>,
    spec: &RunSpec,
    folder: &Path,
    warn: &Tell,
) -> Result<(Arc<dyn Dataset>, Recording), Problem> {
    let query = &spec.query;
    if query.is_empty() {
        return Ok((input, Recording::Unneeded));
    }
    // Sorts and copies of a query go where the run keeps its other files.
    if query.sql.is_some() && spec.id_field.is_none() {
        warn(
            format!(
                "rows are numbered by their place in the result of {SQL}; with {ID_FIELD} a resume \
                  knows them even if the input changes"
            )
            .into(),
        );
    }
    let narrowing = Narrowing { temp: folder, warn };
    let chosen = chosen_rows(input, query, &spec.input, &narrowing)?;
    let (chosen, recording) = recorded(spec, folder, warn, chosen)?;
    Ok((chosen_columns(chosen, query)?, recording))
}

/// Where a query keeps its files, and who hears what it cannot see.
pub(crate) struct Narrowing<'n> {
    pub(crate) temp: &'n Path,
    pub(crate) warn: &'n Tell,
}

/// The rows of an input that a query gives, or that satisfy its condition.
pub(crate) fn chosen_rows(
    input: Arc<dyn Dataset>,
    query: &Query,
    place: &InputSpec,
    Narrowing { temp, warn }: &Narrowing<'_>,
) -> Result<Arc<dyn Dataset>, Problem> {
    let settings = SqlSettings { temp, types: &query.types };
    match (&query.sql, query.engine, &query.condition) {
        (Some(sql), SqlEngine::BuiltIn, _) => sql_dataset(input, sql, &settings, Arc::clone(warn)),
        (Some(sql), SqlEngine::DuckDb, _) => {
            let files = local_files(place)?.ok_or_else(|| {
                Problem::new(
                    ProblemCode::NoSqlEngine,
                    format!(
                        "{sql_engine} needs an input that is made of files",
                        sql_engine = SQL_ENGINE.to("duckdb")
                    ),
                )
                .hint("write the rows into a file first, or leave the flag out")
            })?;
            let read = DuckDbInput { files: &files, delimiter: place.delimiter, types: &query.types };
            duckdb_dataset(input, &read, sql)
        }
        (None, _, Some(condition)) => where_dataset(input, condition, &settings, Arc::clone(warn)),
        (None, _, None) => Ok(input),
    }
}

/// The fields that a query leaves of rows.
pub(crate) fn chosen_columns(rows: Arc<dyn Dataset>, query: &Query) -> Result<Arc<dyn Dataset>, Problem> {
    if query.columns.is_empty() { Ok(rows) } else { columns_dataset(rows, &query.columns) }
}
