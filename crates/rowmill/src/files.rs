//! The files that go with the rows of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::ports::{Attachments, Dataset, Room};
use rowmill_data::{AttachmentSpec, Extractor, Format, attachments, folder_of_input, local_files};
use rowmill_http::HttpClient;
use rowmill_types::{AttachmentRules, Problem, ProblemCode, Row};
use serde_json::Value;

use crate::paths::{ReadPath, WrittenPath, check_apart};
use crate::spec::RunSpec;

/// As many rows are looked at before the run for files that it would write over.
const MOST_CHECKED: usize = 100_000;
/// How many of them one read may bring.
const ROOM: Room = Room { rows: 1024, bytes: 1 << 20 };

/// Whoever brings the files of rows; `None` where no row has any.
pub(crate) fn files(
    spec: &RunSpec,
    dataset: &dyn Dataset,
    rules: AttachmentRules,
    http: &HttpClient,
) -> Result<Option<Arc<dyn Attachments>>, Problem> {
    let documents = dataset.own_id().is_some();
    let flags = &spec.files;
    if !documents && flags.attach.is_empty() {
        return nothing_to_send(spec).map(|()| None);
    }
    let extractor = match &flags.extractor {
        Some((program, args)) => Extractor::Child { program: program.clone(), args: args.clone() },
        None => Extractor::InProcess,
    };
    Ok(Some(attachments(AttachmentSpec {
        fields: flags.attach.clone(),
        documents,
        extract: flags.extract_text.then_some(extractor),
        archive: flags.archive.clone(),
        base: base(spec)?,
        rules,
        http: Some(http.clone()),
    })))
}

/// Checks that no file that goes with one of the first rows is written by the run. Of an input that
/// can be read only once, nothing is known before.
pub(crate) fn check_attached(
    spec: &RunSpec,
    dataset: &dyn Dataset,
    writes: &[WrittenPath],
) -> Result<(), Problem> {
    if spec.files.attach.is_empty() || !dataset.rereadable() {
        return Ok(());
    }
    let base = base(spec)?;
    let (mut source, mut rows, mut seen) = (dataset.open()?, Vec::new(), 0);
    let mut more = true;
    while more && seen < MOST_CHECKED {
        more = source.read(&mut rows, ROOM)?;
        seen += rows.len();
        let good = rows.drain(..).filter_map(Result::ok);
        let reads: Vec<ReadPath> =
            good.flat_map(|row| attached_paths(spec, &row)).map(|path| attached(&base, &path)).collect();
        check_apart(&reads, writes, None)?;
    }
    Ok(())
}

/// The paths in the fields of a row that name files. What is wrong with them is that row's failure.
fn attached_paths(spec: &RunSpec, row: &Row) -> Vec<String> {
    let texts = |json: &str| match serde_json::from_str::<Value>(json) {
        Ok(Value::String(text)) => vec![text],
        Ok(Value::Array(values)) => {
            values.into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    };
    spec.files.attach.iter().filter_map(|field| row.field(field)).flat_map(texts).collect()
}

fn attached(base: &Path, text: &str) -> ReadPath {
    ReadPath::new("`--attach`", base.join(text.strip_prefix("file://").unwrap_or(text)))
}

/// The folder that relative paths in rows start from: that of the input, unless the input is a
/// list of documents, whose paths start from the current folder already.
fn base(spec: &RunSpec) -> Result<PathBuf, Problem> {
    let documents = matches!(local_files(&spec.input)?, Some((_, Format::Documents)));
    Ok(if documents { PathBuf::new() } else { folder_of_input(&spec.input.location) })
}

/// Flags that are about files are mistakes where no file is sent.
fn nothing_to_send(spec: &RunSpec) -> Result<(), Problem> {
    let given = [
        ("--extract", spec.files.extract_text),
        ("--archive-inputs", spec.files.archive.is_some()),
        ("--id", spec.files.id_given),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag @ "--id", _)) => {
            Err(Problem::new(ProblemCode::Usage, format!("{flag} is for documents, and the input has rows"))
                .hint("name the field that tells rows apart with `--id-field`"))
        }
        Some((flag, _)) => {
            Err(Problem::new(ProblemCode::Usage, format!("{flag} was given, but no file goes with a row"))
                .hint("name the field that holds the path with `--attach FIELD`, or give a folder of documents to `--input`"))
        }
        None => Ok(()),
    }
}
