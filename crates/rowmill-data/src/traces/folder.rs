//! The folder of traces: claiming it for a run, and settling it afterwards.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::record::{EnvelopeHead, RedactedTraceFacts};
use rowmill_types::settings::{EXPORT_TRACES, OVERWRITE, RESUME};
use rowmill_types::{Problem, ProblemCode, make_private_folder, private_file_options};
use serde::Deserialize;

use super::name::is_trace_file_name;
use super::sink::TraceSink;
use super::spans;
use crate::output::{
    LineSink, OutputClaimMode, SinkContent, check_folder_of, check_folder_writable, for_each_replaced,
    settle_lines, write_problem,
};

const MANIFEST: &str = "manifest.jsonl";
const SPANS: &str = "spans.jsonl";
const DRAFT: &str = ".trace.rowmill-new";
/// The end of a file is scanned in blocks of this size.
const PIECE: u64 = 64 * 1024;

/// A folder of traces to which no other run can write while this is alive.
#[derive(Debug)]
pub struct TraceFolder {
    path: PathBuf,
    manifest: File,
    claim: OutputClaimMode,
}

/// The fields that are read from a line of a manifest.
#[derive(Deserialize)]
struct ManifestFields {
    run_id: Option<String>,
    trace: Option<String>,
}

/// The fields that are read from the first line of a trace.
#[derive(Deserialize)]
struct SessionLine {
    payload: SessionFields,
}

#[derive(Deserialize)]
struct SessionFields {
    originator: String,
}

impl TraceFolder {
    /// Checks that the folder could be claimed, without touching it.
    ///
    /// # Errors
    ///
    /// It is not a folder, cannot be created, or contains traces but must not.
    pub fn check_claimable(path: &Path, claim: OutputClaimMode) -> Result<(), Problem> {
        let shown = path.display();
        if path.exists() && !path.is_dir() {
            let message = format!("`{shown}`, given to {EXPORT_TRACES}, is not a folder");
            return Err(Problem::new(ProblemCode::OutputPath, message).hint("choose a folder for the traces"));
        }
        check_folder_of(path, EXPORT_TRACES)?;
        if let Some(file) = foreign_file(path) {
            let message =
                format!("{EXPORT_TRACES}: `{}` already exists, and rowmill did not write it", file.display());
            return Err(Problem::new(ProblemCode::OutputExists, message)
                .hint("choose another folder, or move the file away"));
        }
        let has_lines = |file: &PathBuf| file.metadata().is_ok_and(|found| found.len() > 0);
        if claim == OutputClaimMode::New && Self::fixed_file_paths(path).iter().any(has_lines) {
            let message = format!("the folder `{shown}` has the traces of an earlier run");
            return Err(Problem::new(ProblemCode::OutputExists, message).hint(format!(
                "use {RESUME} to continue that run, {OVERWRITE} to replace them, or choose another folder"
            )));
        }
        Ok(())
    }

    /// The two files of every folder of traces.
    #[must_use]
    pub fn fixed_file_paths(path: &Path) -> [PathBuf; 2] {
        [path.join(MANIFEST), path.join(SPANS)]
    }

    /// Whether a file of this name in a folder of traces may be written or removed.
    #[must_use]
    pub fn is_own_name(name: &str) -> bool {
        [MANIFEST, SPANS, DRAFT].contains(&name) || is_trace_file_name(name)
    }

    /// Abandons the claim of a folder to which nothing was written: an empty manifest is removed.
    pub fn abandon_claim(self) {
        if self.manifest.metadata().is_ok_and(|found| found.len() == 0) {
            // If it cannot be removed, it is empty and does no harm.
            drop(fs::remove_file(self.path.join(MANIFEST)));
        }
    }

    /// Creates the folder and locks it. Its contents are not changed.
    ///
    /// # Errors
    ///
    /// As for [`TraceFolder::check_claimable`]; or it cannot be created, or another run has locked it.
    pub fn claim(path: &Path, claim: OutputClaimMode) -> Result<Self, Problem> {
        Self::check_claimable(path, claim)?;
        make_private_folder(path).map_err(|error| write_problem(path, &error))?;
        check_folder_writable(path)?;
        let [manifest, spans] = Self::fixed_file_paths(path);
        if spans.exists() {
            OpenOptions::new().append(true).open(&spans).map_err(|error| write_problem(&spans, &error))?;
        }
        let mut options = private_file_options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&manifest).map_err(|error| write_problem(&manifest, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), manifest: file, claim }),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another run is writing traces to `{}`", path.display());
                Err(Problem::new(ProblemCode::OutputBusy, message)
                    .hint("wait for it, or choose another folder"))
            }
            Err(TryLockError::Error(error)) => Err(write_problem(&manifest, &error)),
        }
    }

    /// The id of the run whose traces it contains, if any.
    #[must_use]
    pub fn run_id(&self) -> Option<String> {
        let mut line = String::new();
        // An unreadable manifest belongs to no run, and is reported when the folder is settled.
        BufReader::new(File::open(Self::fixed_file_paths(&self.path).first()?).ok()?)
            .read_line(&mut line)
            .ok()?;
        serde_json::from_str::<ManifestFields>(&line).ok()?.run_id
    }

    /// Starts writing. Unless the folder is continued, the traces that its manifest names are removed first;
    /// other files are kept.
    ///
    /// # Errors
    ///
    /// A file cannot be changed.
    pub fn sink(self, settings: Arc<RedactedTraceFacts>) -> Result<TraceSink, Problem> {
        let Self { path: folder, manifest: lock, claim } = self;
        let [manifest, spans] = Self::fixed_file_paths(&folder);
        let draft = folder.join(DRAFT);
        // A trace that a crash interrupted; it has no final name yet.
        drop(fs::remove_file(&draft));
        let keep = |path: &Path| if claim == OutputClaimMode::Resume { whole_lines(path) } else { Ok(0) };
        if claim != OutputClaimMode::Resume {
            remove_named(&folder, &manifest)?;
        }
        let open = |path: &Path| {
            let length = keep(path).map_err(|error| write_problem(path, &error))?;
            let made = private_file_options().append(true).create(true).open(path);
            made.map_err(|error| write_problem(path, &error))?;
            LineSink::append(path, SinkContent::Envelopes, length)
        };
        let (manifest, spans) = (open(&manifest)?, open(&spans)?);
        Ok(TraceSink { folder, draft, settings, manifest, spans, buffer: Vec::new(), lock })
    }
}

/// Keeps one line per row in manifest and spans, the latest, in input order; and removes traces that are
/// named only by the removed lines. A folder that is in order is left alone.
///
/// # Errors
///
/// A file cannot be read or written.
pub fn settle_traces(path: &Path) -> Result<(), Problem> {
    let [manifest, spans] = TraceFolder::fixed_file_paths(path);
    let mut stale = HashSet::new();
    for_each_replaced(&manifest, |line| stale.extend(trace_of(line)))?;
    settle_lines(&manifest, EnvelopeHead::parse)?;
    settle_lines(&spans, spans::head_of)?;
    if !stale.is_empty() {
        each_line(&manifest, |line| {
            if let Some(trace) = trace_of(line) {
                stale.remove(&trace);
            }
        })?;
    }
    stale.iter().for_each(|name| remove(path, name));
    Ok(())
}

/// A file in a folder of traces that has one of our names but is not ours.
fn foreign_file(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    named
        .filter(|(name, path)| name != DRAFT && TraceFolder::is_own_name(name) && path.is_file())
        .find(|(name, path)| !is_ours(name, path).unwrap_or(true))
        .map(|(_, path)| path)
}

/// Whether the first line of a file is one that a run writes to a file of this name. A line that was cut by a
/// crash counts if it begins like one.
fn is_ours(name: &str, path: &Path) -> std::io::Result<bool> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?).read_until(b'\n', &mut line)?;
    let begins = |begin: &[u8]| line.starts_with(begin) || begin.starts_with(&line);
    Ok(match name {
        MANIFEST => begins(b"{\"run_id\":\""),
        SPANS => begins(b"{\"resourceSpans\":["),
        // A trace gets its name when it is complete.
        _ => serde_json::from_slice::<SessionLine>(&line)
            .is_ok_and(|line| line.payload.originator == "rowmill"),
    })
}

/// Removes the traces that a manifest names.
fn remove_named(folder: &Path, manifest: &Path) -> Result<(), Problem> {
    each_line(manifest, |line| {
        if let Some(name) = trace_of(line) {
            remove(folder, &name);
        }
    })
}

fn remove(folder: &Path, name: &str) {
    if is_trace_file_name(name) {
        // A missing file needs no removing, and a leftover is not named any more.
        drop(fs::remove_file(folder.join(name)));
    }
}

fn trace_of(line: &[u8]) -> Option<String> {
    serde_json::from_slice::<ManifestFields>(line).ok()?.trace
}

fn each_line(path: &Path, mut saw: impl FnMut(&[u8])) -> Result<(), Problem> {
    let failed = |error: std::io::Error| {
        Problem::new(ProblemCode::OutputUnusable, format!("cannot read `{}`", path.display()))
            .cause(error)
            .hint("check the permissions of the file")
    };
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        saw(&line);
        line.clear();
    }
    Ok(())
}

/// The length of the complete lines of a file in bytes; the rest was cut by a crash.
fn whole_lines(path: &Path) -> std::io::Result<u64> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let mut end = file.metadata()?.len();
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        file.seek(SeekFrom::Start(start))?;
        piece.clear();
        file.by_ref().take(end - start).read_to_end(&mut piece)?;
        if let Some(newline) = piece.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}
