//! Attaches files to the rows of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rowmill_core::ports::{AttachmentLoader, Dataset, ReadLimit};
use rowmill_data::{
    AttachmentSpec, InputFormat, attachment_loader, base_folder_of_input, local_input_files, local_path,
};
use rowmill_http::HttpClient;
use rowmill_types::settings::{ARCHIVE_INPUTS, ATTACH, EXTRACT, ID, ID_FIELD, INPUT};
use rowmill_types::{Attachment, AttachmentRules, Problem, ProblemCode, Row, RowError, RowErrorKind};
use serde_json::Value;

use crate::environment::RunEnvironment;
use crate::paths::{AttachedFiles, ReadPath, WrittenPath, check_paths_disjoint, paths_written};
use crate::side_files::side_files;
use crate::spec::{ExistingOutput, RunSpec};

/// The maximum number of rows that are checked before the run for attached files that it would
/// overwrite, if it replaces no existing file.
const MOST_CHECKED: usize = 100_000;
/// The maximum size of one read.
const ROOM: ReadLimit = ReadLimit { rows: 1024, bytes: 1 << 20 };

/// Loads the files of rows; `None` if no row has any.
pub(crate) fn configured_attachments(
    spec: &RunSpec,
    dataset: &dyn Dataset,
    rules: AttachmentRules,
    (http, environment): (&HttpClient, &RunEnvironment),
) -> Result<Option<Arc<dyn AttachmentLoader>>, Problem> {
    let documents = dataset.default_id_field().is_some();
    let flags = &spec.files;
    if !documents && flags.attach.is_empty() {
        return nothing_to_send(spec).map(|()| None);
    }
    Ok(Some(attachment_loader(AttachmentSpec {
        fields: flags.attach.clone(),
        documents,
        extract: flags.extract_text.then(|| environment.text_extractor()),
        archive: flags.archive.clone(),
        base: base(spec)?,
        rules,
        http: Some(http.clone()),
    })))
}

/// Whether every row must be checked before the first is worked on: rows have attached files, and the
/// run replaces existing files.
///
/// A replaced file is gone before a later row attaches it, so a check at that time would be too late.
/// An input that can be read only once is copied first, which needs no new mechanism; the alternative,
/// a draft that replaces the output at the end, would have to be found and continued by every resume,
/// `export` and `results`. If nothing is replaced, nothing can be lost.
pub(crate) fn must_scan_rows(spec: &RunSpec, work_folder: &Path) -> bool {
    if spec.files.attach.is_empty() {
        return false;
    }
    // Files that a run wrote beside its output are replaced by those of the next run without a flag.
    side_files(spec).any(|(_, path)| holds_something(path))
        || spec.existing == ExistingOutput::Overwrite
            && paths_written(spec, work_folder).iter().any(|write| holds_something(&write.path))
}

fn holds_something(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0)
        || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

/// Checks that the run does not overwrite files attached to its rows, as far as they are known
/// beforehand. Returns the files that were seen.
pub(crate) fn check_attachment_paths(
    spec: &RunSpec,
    dataset: &dyn Dataset,
    (work_folder, writes): (&Path, &[WrittenPath]),
) -> Result<AttachedFiles, Problem> {
    let seen_files = AttachedFiles::default();
    if spec.files.attach.is_empty() || !dataset.is_rereadable() {
        return Ok(seen_files);
    }
    let most = if must_scan_rows(spec, work_folder) { usize::MAX } else { MOST_CHECKED };
    let (base, fields) = (base(spec)?, &spec.files.attach);
    let (mut source, mut rows, mut seen) = (dataset.open()?, Vec::new(), 0);
    let mut more = true;
    while more && seen < most {
        more = source.read(&mut rows, ROOM)?;
        seen += rows.len();
        let good = rows.drain(..).filter_map(Result::ok);
        let reads: Vec<ReadPath> = good.flat_map(|row| attached(fields, &base, &row)).collect();
        check_paths_disjoint(&reads, writes, None)?;
        seen_files.add(&reads);
    }
    Ok(seen_files)
}

/// The files that the fields of a row name. Errors in them are that row's failure.
fn attached(fields: &[String], base: &Path, row: &Row) -> Vec<ReadPath> {
    let texts = |json: &str| match serde_json::from_str::<Value>(json) {
        Ok(Value::String(text)) => vec![text],
        Ok(Value::Array(values)) => {
            values.into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    };
    let texts = fields.iter().filter_map(|field| row.field(field)).flat_map(texts);
    let paths = texts.filter_map(|text| local_path(&text));
    paths.map(|path| ReadPath::new(ATTACH, base.join(path))).collect()
}

/// Rejects files that the run writes, whatever was known of the rows before.
#[derive(Debug)]
struct GuardedAttachments {
    files: Arc<dyn AttachmentLoader>,
    fields: Vec<String>,
    base: PathBuf,
    writes: Arc<[WrittenPath]>,
    seen: AttachedFiles,
}

impl AttachmentLoader for GuardedAttachments {
    fn load<'a>(&'a self, row: &'a Row) -> BoxFuture<'a, Result<Vec<Attachment>, RowError>> {
        let (reads, writes) = (attached(&self.fields, &self.base, row), Arc::clone(&self.writes));
        self.seen.add(&reads);
        async move {
            let checked =
                tokio::task::spawn_blocking(move || check_paths_disjoint(&reads, &writes, None)).await;
            let refused = match checked {
                Ok(checked) => checked.err().map(|problem| problem.message),
                Err(error) => Some(format!("a file of the row could not be examined: {error}").into()),
            };
            match refused {
                Some(message) => Err(RowError::new(RowErrorKind::Attachment, message)),
                None => self.files.load(row).await,
            }
        }
        .boxed()
    }
}

/// Wraps the files so that those which a run with this work folder writes are rejected; attached files
/// are added to `seen`.
pub(crate) fn guard_written_paths(
    spec: &RunSpec,
    work_folder: &Path,
    files: Arc<dyn AttachmentLoader>,
    seen: &AttachedFiles,
) -> Result<Arc<dyn AttachmentLoader>, Problem> {
    let (writes, seen) = (paths_written(spec, work_folder).into(), seen.clone());
    Ok(Arc::new(GuardedAttachments {
        files,
        fields: spec.files.attach.clone(),
        base: base(spec)?,
        writes,
        seen,
    }))
}

/// The folder that relative paths in rows start from: the folder of the input, unless the input is a
/// list of documents, whose paths are relative to the current folder already.
fn base(spec: &RunSpec) -> Result<PathBuf, Problem> {
    let documents = matches!(local_input_files(&spec.input)?, Some((_, InputFormat::Documents)));
    Ok(if documents { PathBuf::new() } else { base_folder_of_input(&spec.input.location) })
}

/// Rejects flags about files if no file is sent.
fn nothing_to_send(spec: &RunSpec) -> Result<(), Problem> {
    let given = [
        (EXTRACT, spec.files.extract_text),
        (ARCHIVE_INPUTS, spec.files.archive.is_some()),
        (ID, spec.files.id_given),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((ID, _)) => Err(Problem::new(
            ProblemCode::Usage,
            format!("{id} is for documents, but the input has rows", id = ID.without_backticks()),
        )
        .hint(format!("set the field that identifies rows with {ID_FIELD}"))),
        Some((setting, _)) => Err(Problem::new(
            ProblemCode::Usage,
            format!("{given} was given, but rows have no files", given = setting.without_backticks()),
        )
        .hint(format!(
            "set the field that contains the path with {attach}, or pass a folder of documents to {INPUT}",
            attach = ATTACH.with_value("FIELD")
        ))),
        None => Ok(()),
    }
}
