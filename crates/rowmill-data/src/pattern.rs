//! Several files as one input.

use std::path::Path;

use rowmill_types::{Problem, ProblemCode};

use crate::{FileList, Format, InputFile, InputSpec};

/// The files that a pattern names, in the order of their names.
pub(crate) fn files_of(pattern: &str) -> Result<FileList, Problem> {
    let found = glob::glob(pattern).map_err(|error| {
        Problem::new(ProblemCode::InputNotFound, format!("input pattern cannot be used: `{pattern}`"))
            .cause(error)
            .hint("`*` stands for any characters, `?` for one, `**` for folders, `[ab]` for one of these")
    })?;
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|error| crate::dataset::cannot_open(error.path(), error.error()))?;
        if path.is_file() {
            files.push(InputFile { name: path.display().to_string(), path });
        }
    }
    if files.is_empty() {
        let message = format!("no input file matches `{pattern}`");
        return Err(Problem::new(ProblemCode::InputNotFound, message)
            .hint("check the pattern, and put it in quotes so that the shell leaves it alone"));
    }
    Ok(FileList { name: pattern.to_owned(), files, identity: None })
}

/// The one format that all files of a list have. Several files of which none is known as a
/// table are documents.
pub(crate) fn format_of(spec: &InputSpec, list: &FileList) -> Result<Format, Problem> {
    if let Some(format) = spec.format {
        return Ok(format);
    }
    let known = |file: &InputFile| spec.format_of(&file.name).ok();
    let Some(first) = list.files.first() else { return Ok(Format::Documents) };
    if let [only] = list.files.as_slice() {
        return match (known(only), is_document(&only.name)) {
            (None, true) => Ok(Format::Documents),
            _ => spec.format_of(&only.name),
        };
    }
    let format = known(first);
    match list.files.iter().find(|file| known(file) != format) {
        None => Ok(format.unwrap_or(Format::Documents)),
        Some(other) => {
            let message = format!(
                "the files of `{}` are of several kinds: `{}` and `{}`",
                list.name, first.name, other.name
            );
            Err(Problem::new(ProblemCode::InputFormat, message)
                .hint("name one with `--input-format`; `documents` makes one row of every file"))
        }
    }
}

/// Whether a file is known to be a document, by its ending.
fn is_document(name: &str) -> bool {
    const DOCUMENTS: &[&str] = &[
        "pdf", "docx", "doc", "html", "htm", "txt", "md", "rtf", "png", "jpg", "jpeg", "gif", "webp", "bmp",
        "tif", "tiff", "heic", "wav", "mp3", "flac", "ogg", "m4a", "mp4", "xml", "pptx", "xlsx",
    ];
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| DOCUMENTS.contains(&ending.as_str()))
}
