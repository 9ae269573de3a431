//! Files that a run writes beside its output, and whether existing files may be replaced by them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use rowmill_core::record::EnvelopeHead;
use rowmill_core::run_header::RunHeader;
use rowmill_data::output::names_open_file;
use rowmill_store::file::WorkFolder;
use rowmill_types::settings::{ERROR_OUTPUT, OVERWRITE, SUMMARY_OUTPUT, TELEMETRY_OUTPUT};
use rowmill_types::{Problem, ProblemCode, Setting};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::full_paths::full_path_text;
use crate::run_storage::RunStorage;
use crate::spec::{ExistingOutput, RunSpec};

/// How many lines of telemetry are checked to recognize a file that a run wrote.
const TELEMETRY_LINES: usize = 100;
/// How every line about one row starts.
const BEGIN: &[u8] = b"{\"id\":";
/// An upper bound on the size of a summary.
const MOST_OF_SUMMARY: u64 = 1 << 20;

/// A kind of file beside the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideFile {
    Errors,
    Telemetry,
    Summary,
}

/// The files that a run writes beside its output.
pub(crate) fn side_files(spec: &RunSpec) -> impl Iterator<Item = (SideFile, &Path)> {
    let all = [
        (SideFile::Errors, &spec.error_output),
        (SideFile::Telemetry, &spec.telemetry_output),
        (SideFile::Summary, &spec.summary_output),
    ];
    all.into_iter().filter_map(|(side, path)| Some((side, path.as_deref()?)))
}

impl SideFile {
    /// The setting that names the file.
    pub(crate) fn setting(self) -> Setting {
        match self {
            Self::Errors => ERROR_OUTPUT,
            Self::Telemetry => TELEMETRY_OUTPUT,
            Self::Summary => SUMMARY_OUTPUT,
        }
    }

    /// Checks that nothing is lost by replacing the file at `path`. A file that a run wrote for the
    /// same flag is replaced by that of the next run; any other file belongs to the user and is
    /// replaced only if the user allows it, and the output of a run not even then. `before` is the
    /// previous run, with its work folder.
    pub(crate) fn check(
        self,
        path: &Path,
        existing: ExistingOutput,
        before: Option<(&RunHeader, &Path)>,
    ) -> Result<(), Problem> {
        if names_open_file(path) || !path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0) {
            return Ok(());
        }
        let (shown, setting) = (path.display(), self.setting());
        if is_output(path) {
            let message = format!("`{shown}`, given to {setting}, is the output of another run");
            return Err(
                Problem::new(ProblemCode::OutputExists, message).hint("choose another path, or move it away")
            );
        }
        // What cannot be read cannot be written either, which is reported then.
        let is_known = self == Self::Errors && is_error_output_of(before, path);
        if existing == ExistingOutput::Overwrite || is_known {
            return Ok(());
        }
        let message = match self.is_ours(path).unwrap_or(true) {
            true if self == Self::Errors && holds_first_rows(path) => {
                format!("`{shown}`, given to {setting}, may be the output of a run whose rows all failed")
            }
            true => return Ok(()),
            false => format!("`{shown}`, given to {setting}, has content that rowmill did not write"),
        };
        Err(Problem::new(ProblemCode::OutputExists, message).hint(match existing {
            ExistingOutput::Refuse | ExistingOutput::Overwrite => {
                format!("choose another path, or use {OVERWRITE} to replace it")
            }
            ExistingOutput::Resume | ExistingOutput::ResumeChanged => {
                "choose another path, or move it away".to_owned()
            }
        }))
    }

    fn is_ours(self, path: &Path) -> std::io::Result<bool> {
        match self {
            Self::Errors => all_lines(path, usize::MAX, |line| {
                EnvelopeHead::parse(line).is_ok_and(|head| !head.ok) && !is_telemetry(line)
            }),
            Self::Telemetry => all_lines(path, TELEMETRY_LINES, is_telemetry),
            Self::Summary => {
                let is_short = path.metadata()?.len() < MOST_OF_SUMMARY;
                Ok(is_short && serde_json::from_slice::<SummaryFields>(&fs::read(path)?).is_ok())
            }
        }
    }
}

/// The fields of every line of telemetry.
#[derive(Deserialize)]
struct TelemetryFields {
    #[serde(rename = "row_number")]
    _number: u64,
    #[serde(rename = "timing")]
    _timing: IgnoredAny,
}

/// The fields of every summary.
#[derive(Deserialize)]
struct SummaryFields {
    #[serde(rename = "model")]
    _model: String,
    #[serde(rename = "started_at")]
    _started: String,
    #[serde(rename = "completed_at")]
    _completed: String,
}

fn is_telemetry(line: &[u8]) -> bool {
    serde_json::from_slice::<TelemetryFields>(line).is_ok()
}

/// Whether the header of a run names this file as its file of failed rows.
fn is_error_output_of(run: Option<(&RunHeader, &Path)>, path: &Path) -> bool {
    let Some((header, folder)) = run else { return false };
    let now = (full_path_text(path), full_path_text(folder));
    header.error_output.as_deref().is_some_and(|known| header.is_same_file(known, (&now.0, &now.1)))
}

/// Whether a file of failed rows contains every row from the first on, as an output does.
fn holds_first_rows(path: &Path) -> bool {
    let mut expected = 0;
    let is_next = |line: &[u8]| {
        expected += 1;
        EnvelopeHead::parse(line).is_ok_and(|head| head.number == expected)
    };
    all_lines(path, usize::MAX, is_next).unwrap_or(false)
}

/// Whether a file is the `--output` of some run.
fn is_output(path: &Path) -> bool {
    // A work folder that cannot be read may belong to a run.
    let has_run = !matches!(RunStorage::look_at(&WorkFolder::default_path(path)).store.header(), Ok(None));
    let is_ok = |line: &[u8]| EnvelopeHead::parse(line).is_ok_and(|head| head.ok) && !is_telemetry(line);
    let mut found = false;
    let looked = all_lines(path, usize::MAX, |line| {
        found = is_ok(line);
        // If the first line is of another kind, nothing more is read.
        !found && EnvelopeHead::parse(line).is_ok() && !is_telemetry(line)
    });
    has_run || looked.is_ok() && found
}

/// Whether the first lines of a file are all of one kind. The last line may be incomplete.
fn all_lines(path: &Path, most: usize, mut is_kind: impl FnMut(&[u8]) -> bool) -> std::io::Result<bool> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    for _ in 0..most {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let is_cut = !line.ends_with(b"\n")
            && (line.starts_with(BEGIN) || BEGIN.starts_with(&line))
            && serde_json::from_slice::<IgnoredAny>(&line).is_err();
        if !is_cut && !is_kind(&line) {
            return Ok(false);
        }
    }
    Ok(true)
}
