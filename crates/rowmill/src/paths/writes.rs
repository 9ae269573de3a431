//! What a run writes.

use std::path::{Path, PathBuf};

use rowmill_data::table::TableTarget;
use rowmill_data::traces::TraceFolder;
use rowmill_store::answers::SqliteAnswers;
use rowmill_store::file::WorkFolder;

use crate::spec::{Output, RunSpec};

/// What a work folder is called that nobody named.
pub(super) const DEFAULT_WORK_FOLDER: &str = "the work folder";

/// A file or folder that is written.
#[derive(Debug)]
pub(crate) struct WrittenPath {
    /// The flag that names it, as messages show it.
    pub(crate) flag: &'static str,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What it is.
    pub(crate) kind: WrittenKind,
}

/// What is written.
#[derive(Debug)]
pub(crate) enum WrittenKind {
    /// A file.
    File,
    /// A file that stands in a folder which is written as a whole.
    FileOfFolder,
    /// A folder, whose files get names that only the run knows.
    Folder(FolderNames),
}

/// The names of files in a folder that is written.
#[derive(Debug)]
pub(crate) struct FolderNames {
    /// Whether a file of this name, directly in the folder, may be written or removed.
    pub(crate) owns: fn(&str) -> bool,
    /// A few of those that there will be.
    pub(crate) samples: Vec<String>,
    /// Whether nobody else may look into it.
    pub(crate) private: bool,
}

impl WrittenPath {
    fn file(flag: &'static str, path: &Path) -> Self {
        Self { flag, path: path.to_owned(), kind: WrittenKind::File }
    }

    /// A folder for prompts, answers and the like, which may be private.
    fn folder(flag: &'static str, path: &Path, owns: fn(&str) -> bool, samples: &[&str]) -> Self {
        let samples = samples.iter().map(|&name| name.to_owned()).collect();
        let names = FolderNames { owns, samples, private: true };
        Self { flag, path: path.to_owned(), kind: WrittenKind::Folder(names) }
    }
}

/// Everything that a run with this work folder writes. A new flag that writes belongs here.
pub(crate) fn writes(spec: &RunSpec, work_folder: &Path) -> Vec<WrittenPath> {
    let mut writes = match &spec.output {
        Output::File(path) => vec![WrittenPath::file("`--output`", path)],
        Output::Stdout => vec![standard_output()],
        Output::Table(table) => vec![table_target(&table.target)],
    };
    let sides = [
        ("`--error-output`", &spec.error_output),
        ("`--telemetry-output`", &spec.telemetry_output),
        ("`--summary-output`", &spec.summary_output),
    ];
    writes
        .extend(sides.into_iter().filter_map(|(flag, path)| Some(WrittenPath::file(flag, path.as_deref()?))));
    if let Some(path) = &spec.traces {
        writes.extend(traces(path));
    }
    if let Some(path) = &spec.files.archive {
        writes.extend(archive(path));
    }
    if let Some(path) = &spec.work.cache {
        let flag = "`--cache`";
        let owns = |name: &str| name.starts_with("answers.sqlite");
        writes.push(WrittenPath::folder(flag, path, owns, &["answers.sqlite"]));
        writes.extend(files_of_folder(flag, SqliteAnswers::files_in(path)));
    }
    if let Some(path) = &spec.work.agents.record_tools {
        writes.extend(recordings(path));
    }
    let flag = if spec.work_dir.is_some() { "`--work-dir`" } else { DEFAULT_WORK_FOLDER };
    let samples = ["run.json", "ledger-1.jsonl", "envelopes.jsonl"];
    writes.push(WrittenPath::folder(flag, work_folder, WorkFolder::owns, &samples));
    writes.extend(files_of_folder(flag, WorkFolder::files_in(work_folder)));
    writes
}

/// Where a table goes.
pub(crate) fn table_target(target: &TableTarget) -> WrittenPath {
    match target {
        TableTarget::File(path) => WrittenPath::file("`--output`", path),
        TableTarget::Stdout => standard_output(),
        TableTarget::Folder { path, .. } => {
            // Values name the files, and any value may come.
            let owns = |name: &str| !name.starts_with('.');
            let samples =
                ["value.jsonl", "value.csv", "value.tsv", "value.parquet"].map(str::to_owned).to_vec();
            let kind = WrittenKind::Folder(FolderNames { owns, samples, private: false });
            WrittenPath { flag: "`--output-dir`", path: path.clone(), kind }
        }
    }
}

fn standard_output() -> WrittenPath {
    WrittenPath::file("`--output -`", Path::new("/dev/stdout"))
}

fn traces(path: &Path) -> Vec<WrittenPath> {
    let flag = "`--export-traces`";
    let samples = ["manifest.jsonl", "spans.jsonl", "row-000001__id-1__worker.codex.jsonl"];
    let mut writes = vec![WrittenPath::folder(flag, path, TraceFolder::owns, &samples)];
    writes.extend(files_of_folder(flag, TraceFolder::files(path)));
    writes
}

/// Copies have their digest for a name and replace nothing; only the index is written in place.
fn archive(path: &Path) -> Vec<WrittenPath> {
    let flag = "`--archive-inputs`";
    let copies = ["pdf", "png", "jpg", "txt", "md", "html"].map(|ending| format!("ab/ab12.{ending}"));
    let samples: Vec<&str> = copies.iter().map(String::as_str).chain(["index.jsonl"]).collect();
    let mut writes = vec![WrittenPath::folder(flag, path, |name| name == "index.jsonl", &samples)];
    writes.extend(files_of_folder(flag, [path.join("index.jsonl")]));
    writes
}

/// A tool's answers are added to the file with its name.
fn recordings(path: &Path) -> Vec<WrittenPath> {
    let flag = "`--record-tools`";
    let owns = |name: &str| name.ends_with(".jsonl");
    let mut writes = vec![WrittenPath::folder(flag, path, owns, &["tool.jsonl"])];
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let there = entries.filter(|entry| owns(&entry.file_name().to_string_lossy()));
    writes.extend(files_of_folder(flag, there.map(|entry| entry.path())));
    writes
}

fn files_of_folder(
    flag: &'static str,
    files: impl IntoIterator<Item = PathBuf>,
) -> impl Iterator<Item = WrittenPath> {
    files.into_iter().map(move |path| WrittenPath { flag, path, kind: WrittenKind::FileOfFolder })
}
