//! The files that a run writes.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use rowmill_data::table::TableTarget;
use rowmill_data::traces::TraceFolder;
use rowmill_store::answers::SqliteAnswerStore;
use rowmill_store::file::WorkFolder;
use rowmill_types::DiagnosticText;

use crate::spec::{OutputTarget, RunSpec};
use rowmill_types::settings::{
    ARCHIVE_INPUTS, CACHE, ERROR_OUTPUT, EXPORT_TRACES, OUTPUT, OUTPUT_DIR, RECORD_TOOLS, SUMMARY_OUTPUT,
    TELEMETRY_OUTPUT, WORK_DIR,
};

/// The name in messages of a work folder that the user did not name.
pub(super) const DEFAULT_WORK_FOLDER: &str = "the work folder";

/// A file or folder that is written.
#[derive(Debug)]
pub(crate) struct WrittenPath {
    /// The flag that names it, as messages show it.
    pub(crate) named_by: DiagnosticText,
    /// The path.
    pub(crate) path: PathBuf,
    /// The kind.
    pub(crate) kind: WrittenKind,
}

/// The kind of a path that is written.
#[derive(Debug)]
pub(crate) enum WrittenKind {
    /// A file.
    File,
    /// A file in a folder that is written as a whole.
    FileInFolder,
    /// A folder with files whose names only the run knows.
    Folder(FolderNames),
}

/// The names of files in a folder that is written.
#[derive(Debug)]
pub(crate) struct FolderNames {
    /// Whether a file of this name, directly in the folder, may be written or removed.
    pub(crate) owns: fn(&str) -> bool,
    /// Examples of such names.
    pub(crate) samples: Vec<String>,
    /// Whether the folder is private to its owner.
    pub(crate) private: bool,
}

impl WrittenPath {
    fn file(named_by: impl Display, path: &Path) -> Self {
        Self { named_by: named_by.to_string().into(), path: path.to_owned(), kind: WrittenKind::File }
    }

    /// A folder for prompts, answers and the like, which may be private.
    fn folder(named_by: impl Display, path: &Path, owns: fn(&str) -> bool, samples: &[&str]) -> Self {
        let samples = samples.iter().map(|&name| name.to_owned()).collect();
        let names = FolderNames { owns, samples, private: true };
        Self {
            named_by: named_by.to_string().into(),
            path: path.to_owned(),
            kind: WrittenKind::Folder(names),
        }
    }
}

/// Everything that a run with this work folder writes. A new flag that writes a file belongs here.
pub(crate) fn paths_written(spec: &RunSpec, work_folder: &Path) -> Vec<WrittenPath> {
    let mut writes = match &spec.output {
        OutputTarget::File(path) => vec![WrittenPath::file(OUTPUT, path)],
        OutputTarget::Stdout => vec![standard_output()],
        OutputTarget::Table(table) => vec![table_path_written(&table.target)],
    };
    let sides = [
        (ERROR_OUTPUT, &spec.error_output),
        (TELEMETRY_OUTPUT, &spec.telemetry_output),
        (SUMMARY_OUTPUT, &spec.summary_output),
    ];
    writes.extend(
        sides.into_iter().filter_map(|(setting, path)| Some(WrittenPath::file(setting, path.as_deref()?))),
    );
    if let Some(path) = &spec.traces {
        writes.extend(traces(path));
    }
    if let Some(path) = &spec.files.archive {
        writes.extend(archive(path));
    }
    if let Some(path) = &spec.work.cache {
        let owns = |name: &str| name.starts_with("answers.sqlite");
        writes.push(WrittenPath::folder(CACHE, path, owns, &["answers.sqlite"]));
        writes.extend(files_of_folder(CACHE, SqliteAnswerStore::files_in(path)));
    }
    if let Some(path) = &spec.work.agents.record_tools {
        writes.extend(recordings(path));
    }
    let named_by = match spec.work_dir {
        Some(_) => WORK_DIR.to_string(),
        None => DEFAULT_WORK_FOLDER.to_owned(),
    };
    let samples = ["run.json", "ledger-1.jsonl", "envelopes.jsonl"];
    writes.push(WrittenPath::folder(&named_by, work_folder, WorkFolder::is_own_name, &samples));
    writes.extend(files_of_folder(named_by, WorkFolder::overwritten_files_in(work_folder)));
    writes
}

/// The target of a table.
pub(crate) fn table_path_written(target: &TableTarget) -> WrittenPath {
    match target {
        TableTarget::File(path) => WrittenPath::file(OUTPUT, path),
        TableTarget::Stdout => standard_output(),
        TableTarget::Folder { path, .. } => {
            // Values of rows name the files, and any value may occur.
            let owns = |name: &str| !name.starts_with('.');
            let samples =
                ["value.jsonl", "value.csv", "value.tsv", "value.parquet"].map(str::to_owned).to_vec();
            let kind = WrittenKind::Folder(FolderNames { owns, samples, private: false });
            WrittenPath { named_by: OUTPUT_DIR.to_string().into(), path: path.clone(), kind }
        }
    }
}

fn standard_output() -> WrittenPath {
    WrittenPath::file(OUTPUT.with_value("-"), Path::new("/dev/stdout"))
}

fn traces(path: &Path) -> Vec<WrittenPath> {
    let samples = ["manifest.jsonl", "spans.jsonl", "row-000001__id-1__worker.codex.jsonl"];
    let mut writes = vec![WrittenPath::folder(EXPORT_TRACES, path, TraceFolder::is_own_name, &samples)];
    writes.extend(files_of_folder(EXPORT_TRACES, TraceFolder::fixed_file_paths(path)));
    writes
}

/// Copies are named by their digest and replace nothing; only the index is overwritten.
fn archive(path: &Path) -> Vec<WrittenPath> {
    let copies = ["pdf", "png", "jpg", "txt", "md", "html"].map(|ending| format!("ab/ab12.{ending}"));
    let samples: Vec<&str> = copies.iter().map(String::as_str).chain(["index.jsonl"]).collect();
    let mut writes = vec![WrittenPath::folder(ARCHIVE_INPUTS, path, |name| name == "index.jsonl", &samples)];
    writes.extend(files_of_folder(ARCHIVE_INPUTS, [path.join("index.jsonl")]));
    writes
}

/// Answers of a tool are appended to the file with its name.
fn recordings(path: &Path) -> Vec<WrittenPath> {
    let owns = |name: &str| name.ends_with(".jsonl");
    let mut writes = vec![WrittenPath::folder(RECORD_TOOLS, path, owns, &["tool.jsonl"])];
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let there = entries.filter(|entry| owns(&entry.file_name().to_string_lossy()));
    writes.extend(files_of_folder(RECORD_TOOLS, there.map(|entry| entry.path())));
    writes
}

fn files_of_folder(
    named_by: impl Display,
    files: impl IntoIterator<Item = PathBuf>,
) -> impl Iterator<Item = WrittenPath> {
    let named_by = DiagnosticText::from(named_by.to_string());
    files.into_iter().map(move |path| WrittenPath {
        named_by: named_by.clone(),
        path,
        kind: WrittenKind::FileInFolder,
    })
}
