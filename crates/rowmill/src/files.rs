//! The files that go with the rows of a run.

use std::path::PathBuf;
use std::sync::Arc;

use rowmill_core::ports::{Attachments, Dataset};
use rowmill_data::{AttachmentSpec, Extractor, Format, attachments, folder_of_input, local_files};
use rowmill_http::HttpClient;
use rowmill_types::{AttachmentRules, Problem, ProblemCode};

use crate::spec::RunSpec;

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
