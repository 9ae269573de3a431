//! Rebuilds an output that somebody changed while a run was writing it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::ports::RunStore;
use rowmill_core::record::EnvelopeHead;
use rowmill_types::settings::RESUME;
use rowmill_types::{Problem, ProblemCode};
use tempfile::NamedTempFile;

use super::claim::{OutputFile, create_replacement, write_problem};
use super::envelopes::{EnvelopeReader, NewerRecords};
use super::lines::read_problem;
use super::settle::finish_replacement;

/// The result of rebuilding an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildReport {
    /// Envelopes in the output, one per row.
    pub envelopes: u64,
    /// The new path of the file that was found, if it had lines that are not envelopes.
    pub set_aside: Option<PathBuf>,
}

impl OutputFile {
    /// Rewrites the output in input order: every record of the run in `store`, and the file's envelopes of
    /// other rows. A file with lines that are not envelopes is not lost: it is renamed.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written; the output is then unchanged.
    pub fn rebuild(
        &self,
        store: &Arc<dyn RunStore>,
        records: NewerRecords,
    ) -> Result<RebuildReport, Problem> {
        let path = &self.resolved_path();
        if path.is_dir() {
            return Err(became(path, "a folder"));
        }
        // Opening a pipe would wait for someone at its other end.
        if path.exists() && !path.is_file() {
            return Err(became(path, "something other than a file"));
        }
        let (readable, foreign_lines) = readable_lines(path)?;
        let envelopes = EnvelopeReader::with_newer_records(Some(readable.path()), Some(store), records)?;
        let (beside, file) = create_replacement(path)?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        let mut count = 0;
        envelopes.for_each(|line| {
            count += 1;
            out.write_all(line.trim_ascii_end())
                .and_then(|()| out.write_all(b"\n"))
                .map_err(|error| write_problem(&beside, &error))
        })?;
        let set_aside = if foreign_lines > 0 { Some(set_aside(path)?) } else { None };
        finish_replacement(out, &beside, path)?;
        Ok(RebuildReport { envelopes: count, set_aside })
    }
}

fn became(path: &Path, what: &str) -> Problem {
    let message = format!("`{}` became {what} while the run was writing it", path.display());
    Problem::new(ProblemCode::WriteFailed, message).hint(format!(
        "move it away, then run the same command with {RESUME} to write the output again; every answer is \
         kept"
    ))
}

/// A copy of the lines of a file that are envelopes, and the number of other lines. A link leads to a file
/// that the run did not write, so none of its lines are taken.
fn readable_lines(path: &Path) -> Result<(NamedTempFile, u64), Problem> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let copy = tempfile::Builder::new().prefix(".rowmill-").tempfile_in(folder);
    let copy = copy.map_err(|error| write_problem(folder, &error))?;
    let mut foreign_lines = 0;
    if path.is_symlink() {
        return Ok((copy, 1));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((copy, foreign_lines)),
        Err(error) => return Err(read_problem(path, &error)),
    };
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut out = BufWriter::with_capacity(1 << 18, copy.as_file());
    let failed = |error: std::io::Error| write_problem(copy.path(), &error);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|error| read_problem(path, &error))? == 0 {
            break;
        }
        if EnvelopeHead::parse(&line).is_ok() {
            out.write_all(line.trim_ascii_end()).and_then(|()| out.write_all(b"\n")).map_err(failed)?;
        } else if !line.trim_ascii().is_empty() {
            foreign_lines += 1;
        }
    }
    out.flush().map_err(failed)?;
    drop(out);
    Ok((copy, foreign_lines))
}

/// Renames a file to an unused name beside its own.
fn set_aside(path: &Path) -> Result<PathBuf, Problem> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut aside = path.with_file_name(format!("{name}.changed"));
    let mut number = 1;
    while aside.exists() {
        number += 1;
        aside = path.with_file_name(format!("{name}.changed-{number}"));
    }
    fs::rename(path, &aside).map_err(|error| write_problem(&aside, &error))?;
    Ok(aside)
}
