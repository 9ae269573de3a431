//! Builds a table from the results of a run, even while the run is in progress.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use rowmill_core::record::EnvelopeHead;
use rowmill_core::run_header::RunHeader;
use rowmill_data::local_path;
use rowmill_data::output::OutputClaimMode;
use rowmill_data::table::{InputRowInclusion, TableTarget, listed_table_paths, write_table_draft};
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::{JSON_SCHEMA, OVERWRITE, WORK_DIR};
use rowmill_types::{DiagnosticText, Problem, ProblemCode, find_storage_limit_hint};

use crate::all_envelopes::all_envelopes;
use crate::environment::RunEnvironment;
use crate::paths::{
    CreatedFolders, ReadPath, check_paths_disjoint, source_paths_from_header, table_path_written,
};
use crate::run_storage::RunStorage;
use crate::spec::{FOLDER_IN_OUTPUT, TableOutput};
use crate::texts::load_one_text;

/// The maximum number of attempts. A run that ends while it is read moves its records, so all of them
/// are read again.
const TRIES: usize = 5;

/// What to export, and where to.
#[derive(Debug, Clone)]
pub struct ExportSpec {
    /// The output of a run, or its work folder.
    pub run: PathBuf,
    /// The work folder of the run, if it is not beside its output.
    pub work_dir: Option<PathBuf>,
    /// The table to write.
    pub table: TableOutput,
    /// Whether the table contains the input rows.
    pub input: InputRowInclusion,
    /// The source of the JSON Schema of results, if the run does not record it.
    pub schema: Option<String>,
    /// Whether an existing table is replaced.
    pub overwrite: bool,
    /// Where variables are looked up.
    pub environment: RunEnvironment,
}

/// The report of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// The number of rows in the table.
    pub rows: u64,
    /// The number of these rows that failed.
    pub failed_rows: u64,
    /// The number of files that were written.
    pub files: u64,
    /// Notices for the user: folders that were created.
    pub notices: Vec<DiagnosticText>,
}

/// Writes a table with all results of a run so far. Nothing of the run is changed.
///
/// # Errors
///
/// There is no such run, it has no results, or the table cannot be written.
pub async fn export_table(spec: ExportSpec) -> Result<ExportReport, Problem> {
    let claim = if spec.overwrite { OutputClaimMode::Overwrite } else { OutputClaimMode::New };
    spec.table.format.check_built()?;
    spec.table.target.check(claim).map_err(without_resume)?;
    let schema = match &spec.schema {
        Some(source) => Some(load_one_text(source, JSON_SCHEMA, &spec.environment).await?),
        None => None,
    };
    let done = tokio::task::spawn_blocking(move || {
        let found = ExportedRun::at(&spec)?;
        let writes = [table_path_written(&spec.table.target)];
        check_paths_disjoint(&found.reads(&spec), &writes, None)?;
        let made = CreatedFolders::create(&writes)?;
        for _ in 0..TRIES {
            let made_one = attempt(&spec, &found, schema.as_deref(), claim).map_err(without_resume)?;
            if let Some(report) = made_one {
                return Ok(ExportReport { notices: made.commit(), ..report });
            }
        }
        Err(changed(&spec.run))
    });
    done.await.map_err(|error| Problem::new(ProblemCode::Internal, "a worker thread failed").cause(error))?
}

/// Makes the table; `None` if the run moved its records meanwhile.
fn attempt(
    spec: &ExportSpec,
    found: &ExportedRun,
    schema: Option<&str>,
    claim: OutputClaimMode,
) -> Result<Option<ExportReport>, Problem> {
    let before = found.state()?;
    let ended = all_envelopes(
        found.envelopes.as_deref(),
        found.place.as_ref().map(|place| &place.store),
        before.header.as_ref(),
    );
    let made = ended.and_then(|envelopes| {
        let header_schema = before.header.as_ref().and_then(|header| header.schema.as_deref());
        let schema = schema.or(header_schema).map(str::to_owned);
        let settings = spec.table.settings(spec.input, schema, spec.environment.redactor()?);
        write_table_draft(&envelopes, &settings, &spec.table.target)
    });
    if found.state()? != before {
        return match spec.table.target {
            TableTarget::Stdout => Err(changed(&spec.run)),
            TableTarget::File(_) | TableTarget::Folder { .. } => Ok(None),
        };
    }
    let draft = made?;
    if draft.rows == 0 {
        let message = format!("the run in `{}` has no results yet", spec.run.display());
        return Err(Problem::new(ProblemCode::RunUnusable, message).hint("wait until some rows are finished"));
    }
    let (rows, failed_rows, files) = (draft.rows, draft.failed_rows, draft.files);
    let report = ExportReport { rows, failed_rows, files, notices: Vec::new() };
    draft.publish(claim)?;
    Ok(Some(report))
}

/// Removes hints about resuming: an export can only be repeated, with the same or another table.
fn without_resume(problem: Problem) -> Problem {
    match problem.code {
        ProblemCode::OutputExists => {
            problem.hint(format!("use {OVERWRITE} to replace it, or choose another path"))
        }
        ProblemCode::WriteFailed => {
            let remedy =
                problem.hint.as_deref().and_then(find_storage_limit_hint).unwrap_or("free some space there");
            problem.hint(format!("{remedy}, or choose another path; the run was not changed"))
        }
        _ => problem,
    }
}

/// The files of a run that were found.
#[derive(Debug)]
struct ExportedRun {
    /// The file of envelopes, if there is one.
    envelopes: Option<PathBuf>,
    /// The storage of the run, if it still exists.
    place: Option<RunStorage>,
}

/// What changes when a run ends, restarts or is resumed.
#[derive(Debug, PartialEq)]
struct RunStateMarks {
    header: Option<RunHeader>,
    /// The identity of the file: a settled output is a new file.
    file: Option<u64>,
}

impl ExportedRun {
    fn at(spec: &ExportSpec) -> Result<Self, Problem> {
        let named = spec.work_dir.clone();
        let folders = if spec.run.is_dir() {
            vec![spec.run.clone(), spec.run.join(FOLDER_IN_OUTPUT)]
        } else {
            vec![WorkFolder::default_path(&spec.run)]
        };
        let has_run =
            |folder: &PathBuf| matches!(RunStorage::look_at(folder).store.header(), Ok(Some(_)) | Err(_));
        let folder = named.into_iter().chain(folders).find(has_run);
        let internal = folder.as_deref().map(WorkFolder::envelopes_path_in).filter(|path| path.exists());
        let output =
            if spec.run.is_dir() { folder.as_deref().and_then(output_of) } else { Some(spec.run.clone()) };
        let envelopes = internal.or_else(|| output.filter(|path| path.is_file()));
        let place = folder.as_deref().map(RunStorage::look_at);
        if envelopes.is_none() && place.is_none() {
            return Err(no_run(&spec.run));
        }
        if let Some(path) = &envelopes {
            check_is_output(path)?;
        }
        Ok(Self { envelopes, place })
    }

    /// Every file that is read for the table, or that belongs to the run and is another table.
    fn reads(&self, spec: &ExportSpec) -> Vec<ReadPath> {
        let work = self.place.iter().flat_map(|place| WorkFolder::overwritten_files_in(place.folder.path()));
        let tables = match &spec.table.target {
            TableTarget::File(_) => listed_table_paths(&spec.run),
            TableTarget::Stdout | TableTarget::Folder { .. } => Vec::new(),
        };
        let run = self.envelopes.iter().cloned().chain(work).chain(tables);
        // A header that cannot be read is reported when the table is made.
        let header = self.place.as_ref().and_then(|place| place.store.header().ok().flatten());
        let made_from =
            header.as_ref().map(|header| source_paths_from_header(&header.reads)).unwrap_or_default();
        let input = header.map(|header| header.fingerprint.input.path).filter(|path| path != "-");
        let schema = spec.schema.as_deref().and_then(local_path);
        run.map(|path| ReadPath::new("the run itself", path))
            .chain(schema.map(|path| ReadPath::new(JSON_SCHEMA, path)))
            .chain(input.map(|path| ReadPath::new("the input of the run", path)))
            .chain(made_from)
            .collect()
    }

    fn state(&self) -> Result<RunStateMarks, Problem> {
        use std::os::unix::fs::MetadataExt;
        let header = self.place.as_ref().map(|place| place.store.header()).transpose()?.flatten();
        let found = self.envelopes.as_ref().and_then(|path| fs::metadata(path).ok());
        Ok(RunStateMarks { header, file: found.map(|found| found.ino()) })
    }
}

/// The output that belongs to a work folder.
fn output_of(folder: &Path) -> Option<PathBuf> {
    let name = folder.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(".rowmill")?;
    Some(folder.with_file_name(name)).filter(|_| !name.is_empty())
}

fn no_run(path: &Path) -> Problem {
    let shown = path.display();
    let (what, hint) = if path.exists() {
        (
            format!("`{shown}` does not contain a run"),
            "use the output of a run or its work folder, `.OUTPUT.rowmill`".to_owned(),
        )
    } else {
        (
            format!("there is no run `{shown}`"),
            format!("use the output of a run, or its work folder; a run with {WORK_DIR} needs it here too"),
        )
    };
    Problem::new(ProblemCode::RunUnusable, what).hint(hint)
}

/// The problem if the run changed while it was read: a table on standard output cannot be taken back, and
/// for files this was the last attempt.
fn changed(run: &Path) -> Problem {
    let message = format!("the run in `{}` changed while it was being read", run.display());
    Problem::new(ProblemCode::OutputBusy, message).hint("try again in a moment")
}

/// Checks by its first line that a file is one of envelopes.
fn check_is_output(path: &Path) -> Result<(), Problem> {
    let unusable = |cause: &dyn std::fmt::Display| {
        let message = format!("`{}` is not an output of rowmill", path.display());
        Problem::new(ProblemCode::RunUnusable, message).cause(cause).hint(format!(
            "use the output of a run, or its work folder; a run with {WORK_DIR} needs it here too"
        ))
    };
    let mut reader = BufReader::new(fs::File::open(path).map_err(|error| unusable(&error))?);
    let mut line = Vec::new();
    while line.trim_ascii().is_empty() {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|error| unusable(&error))? == 0 {
            return Ok(());
        }
    }
    match EnvelopeHead::parse(&line) {
        // The very first line may be half written at this moment.
        Err(error) if error.is_eof() && line.last() != Some(&b'\n') => Ok(()),
        parsed => parsed.map(drop).map_err(|error| unusable(&error)),
    }
}
