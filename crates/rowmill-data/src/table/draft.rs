//! Writes a table to a temporary location, and moves it into place once it is complete.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_types::{Problem, ProblemCode};
use tempfile::{NamedTempFile, TempDir};

use super::cells::EnvelopeParts;
use super::columns::OutputColumns;
use super::split::SplitEnvelopes;
use super::survey::ColumnSurvey;
use super::target::{LIST, OWN_NAMES, UNFINISHED, folder_of, temp_name_prefix};
use super::writer::table_row_writer;
use super::{TableExportSettings, TableTarget};
use crate::output::{
    EnvelopeReader, OutputClaimMode, StandardOutput, link_target, stdout_problem, write_problem,
};

/// A complete table that was not published yet. Dropping it removes it.
#[derive(Debug)]
pub struct TableDraft {
    /// The number of rows.
    pub rows: u64,
    /// The number of failed rows.
    pub failed_rows: u64,
    /// The number of files.
    pub files: u64,
    place: DraftPlace,
}

#[derive(Debug)]
enum DraftPlace {
    /// It was already written to standard output.
    Stdout,
    File(NamedTempFile<File>, PathBuf),
    Folder(TempDir, Vec<String>, PathBuf),
}

/// Writes the table of the envelopes. Output to standard output is final; otherwise nothing is changed before
/// [`TableDraft::publish`].
///
/// # Errors
///
/// The envelopes cannot be read, lack something that the table needs, or the table cannot be written.
pub fn write_table_draft(
    envelopes: &EnvelopeReader,
    settings: &TableExportSettings,
    target: &TableTarget,
) -> Result<TableDraft, Problem> {
    let mut survey = ColumnSurvey::new(settings);
    envelopes.for_each(|line| {
        survey.add_envelope(&parse_envelope(line)?);
        Ok(())
    })?;
    survey.check(settings)?;
    let (rows, failed_rows) = (survey.rows, survey.failed_rows);
    let columns = Arc::new(OutputColumns::new(survey, settings));
    let table = TableWriter { settings, columns };
    let (files, place) = match target {
        TableTarget::Stdout => {
            let stdout = StandardOutput::open().map_err(|error| stdout_problem(&error))?;
            table.write(envelopes, None, stdout)?;
            (1, DraftPlace::Stdout)
        }
        TableTarget::File(path) => (1, table.file(envelopes, path)?),
        TableTarget::Folder { path, split_by } => table.folder(envelopes, path, split_by)?,
    };
    Ok(TableDraft { rows, failed_rows, files, place })
}

struct TableWriter<'s> {
    settings: &'s TableExportSettings,
    columns: Arc<OutputColumns>,
}

impl TableWriter<'_> {
    /// Writes to `out`, which is the file at `path` or standard output.
    fn write(
        &self,
        envelopes: &EnvelopeReader,
        path: Option<&Path>,
        out: impl Write + Send,
    ) -> Result<(), Problem> {
        let failed = |error: io::Error| match path {
            Some(path) => write_problem(path, &error),
            None => stdout_problem(&error),
        };
        let mut out = BufWriter::with_capacity(1 << 18, out);
        {
            let mut writer = table_row_writer(self.settings, &self.columns, &mut out).map_err(failed)?;
            envelopes.for_each(|line| writer.write_row(&parse_envelope(line)?, line).map_err(failed))?;
            writer.finish().map_err(failed)?;
        }
        out.flush().map_err(failed)
    }

    fn file(&self, envelopes: &EnvelopeReader, path: &Path) -> Result<DraftPlace, Problem> {
        // A link is kept, and its target is replaced.
        let path = link_target(path);
        let failed = |error: io::Error| write_problem(&path, &error);
        let beside = tempfile::Builder::new()
            .prefix(&temp_name_prefix(&path))
            .suffix(UNFINISHED)
            .make_in(folder_of(&path), |path| File::create_new(path))
            .map_err(failed)?;
        self.write(envelopes, Some(&path), beside.as_file())?;
        if let Ok(found) = path.metadata() {
            beside.as_file().set_permissions(found.permissions()).map_err(failed)?;
        }
        beside.as_file().sync_all().map_err(failed)?;
        Ok(DraftPlace::File(beside, path))
    }

    fn folder(
        &self,
        envelopes: &EnvelopeReader,
        path: &Path,
        split_by: &str,
    ) -> Result<(u64, DraftPlace), Problem> {
        let failed = |error: io::Error| write_problem(path, &error);
        fs::create_dir_all(path).map_err(failed)?;
        let beside = tempfile::Builder::new()
            .prefix(&format!("{OWN_NAMES}-"))
            .suffix(UNFINISHED)
            .tempdir_in(path)
            .map_err(failed)?;
        let mut parts = SplitEnvelopes::new(
            beside.path(),
            split_by,
            self.settings.format,
            self.settings.redactor.clone(),
        );
        envelopes.for_each(|line| parts.push(&parse_envelope(line)?, line))?;
        let mut names = Vec::new();
        for part in parts.finish()? {
            let table = beside.path().join(&part.name);
            let file = File::create_new(&table).map_err(failed)?;
            self.write(
                &EnvelopeReader::from_settled_file(&part.envelopes),
                Some(&path.join(&part.name)),
                &file,
            )?;
            file.sync_all().map_err(failed)?;
            fs::remove_file(&part.envelopes).map_err(failed)?;
            names.push(part.name);
        }
        Ok((names.len() as u64, DraftPlace::Folder(beside, names, path.to_owned())))
    }
}

impl TableDraft {
    /// Moves the table into place. With [`OutputClaimMode::New`], anything that was created there in the meantime is
    /// kept.
    ///
    /// # Errors
    ///
    /// Something is there that must be kept, or the location is not writable.
    pub fn publish(self, claim: OutputClaimMode) -> Result<(), Problem> {
        match self.place {
            DraftPlace::Stdout => Ok(()),
            DraftPlace::File(beside, path) => {
                let put = match claim {
                    OutputClaimMode::New => beside.persist_noclobber(&path),
                    OutputClaimMode::Resume | OutputClaimMode::Overwrite => beside.persist(&path),
                };
                put.map(drop).map_err(|error| match error.error.kind() {
                    io::ErrorKind::AlreadyExists => appeared(&path),
                    _ => write_problem(&path, &error.error),
                })
            }
            DraftPlace::Folder(beside, names, path) => {
                let before = listed_tables(&path);
                // Only tables from earlier runs may be replaced; all other files are foreign.
                let foreign = |name: &&String| !before.contains(*name) && path.join(name).exists();
                if let Some(name) = names.iter().find(foreign) {
                    return Err(in_the_way(&path.join(name)));
                }
                put_all(beside.path(), &names, &path, &before).map_err(|error| write_problem(&path, &error))
            }
        }
    }
}

fn in_the_way(path: &Path) -> Problem {
    let message = format!("`{}` already exists, and rowmill did not create it", path.display());
    Problem::new(ProblemCode::OutputExists, message)
        .hint("move it away, then create the tables with `rowmill export`; every result is kept")
}

/// The names of the tables that earlier runs put into a folder.
pub(super) fn listed_tables(folder: &Path) -> BTreeSet<String> {
    let list = fs::read(folder.join(LIST)).ok();
    list.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn appeared(path: &Path) -> Problem {
    let message = format!("`{}` was created by another program during the run", path.display());
    Problem::new(ProblemCode::OutputExists, message)
        .hint("move it away, then create the table with `rowmill export`; every result is kept")
}

/// Moves the tables into the folder and removes those of earlier runs. The list of tables is written before
/// and after, so that a crash in between leaves none that is not listed.
fn put_all(beside: &Path, names: &[String], folder: &Path, before: &BTreeSet<String>) -> io::Result<()> {
    let list = folder.join(LIST);
    let now: BTreeSet<String> = names.iter().cloned().collect();
    write_list(&list, &before.union(&now).cloned().collect())?;
    for name in &now {
        fs::rename(beside.join(name), folder.join(name))?;
    }
    // Only names without a folder in them can be ours.
    for name in before.difference(&now).filter(|name| Path::new(name).components().count() == 1) {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    write_list(&list, &now)
}

fn write_list(path: &Path, names: &BTreeSet<String>) -> io::Result<()> {
    let fresh = path.with_extension("parts-new");
    fs::write(&fresh, serde_json::to_vec_pretty(names)?)?;
    fs::rename(&fresh, path)
}

pub(super) fn parse_envelope(line: &[u8]) -> Result<EnvelopeParts<'_>, Problem> {
    EnvelopeParts::parse(line).map_err(|error| {
        Problem::new(ProblemCode::OutputUnusable, "an envelope of the run cannot be read").cause(error)
    })
}
