//! Patterns that name several files as one input.

use std::fs;
use std::path::Path;

use glob::MatchOptions;
use rowmill_types::settings::INPUT_FORMAT;
use rowmill_types::{Problem, ProblemCode};

use crate::dataset::open_problem;
use crate::input::is_spreadsheet;
use crate::{FileList, InputFile, InputFormat, InputSpec};

/// How names are matched: as in a shell, a name with a leading dot matches only a pattern with one, so that
/// `**` does not find the work folders of earlier runs.
fn options(pattern: &str) -> MatchOptions {
    MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        // The strict mode never matches hidden names, so patterns that ask for them need the other mode.
        require_literal_leading_dot: !hidden_parts(pattern).any(|part| part.contains(['*', '?', '['])),
    }
}

/// The parts of a path or pattern with a leading dot.
fn hidden_parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| part.starts_with('.') && !matches!(*part, "." | ".."))
}

/// Whether the pattern explicitly asks for every hidden part of a path.
fn is_asked_for(path: &Path, pattern: &str) -> bool {
    let asked = |part: &str| {
        hidden_parts(pattern).any(|wanted| {
            wanted == part || glob::Pattern::new(wanted).is_ok_and(|wanted| wanted.matches(part))
        })
    };
    path.to_str().is_none_or(|path| hidden_parts(path).all(asked))
}

/// Whether a pattern would match a file at `path`, whether it exists or not.
pub(crate) fn matches(pattern: &str, path: &Path) -> bool {
    let matches = |wanted: glob::Pattern| wanted.matches_path_with(path, options(pattern));
    glob::Pattern::new(pattern).is_ok_and(matches) && is_asked_for(path, pattern)
}

/// The files that match a pattern, ordered by name.
pub(crate) fn files_of(pattern: &str) -> Result<FileList, Problem> {
    let found = glob::glob_with(pattern, options(pattern)).map_err(|error| {
        Problem::new(ProblemCode::InputNotFound, format!("invalid input pattern: `{pattern}`"))
            .cause(error)
            .hint("`*` matches any characters, `?` one, `**` folders, `[ab]` one of these characters")
    })?;
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|error| open_problem(error.path(), error.error()))?;
        if !is_asked_for(&path, pattern) {
            continue;
        }
        // A dangling link is reported and not skipped.
        let kind = fs::metadata(&path).map_err(|error| open_problem(&path, &error))?.file_type();
        if kind.is_file() {
            let name = path.display().to_string();
            files.push(InputFile::new(path, name));
        } else if !kind.is_dir() {
            let message = format!("`{pattern}` matches something that is not a file: `{}`", path.display());
            return Err(Problem::new(ProblemCode::InputNotFound, message)
                .hint("choose a pattern that does not match it"));
        }
    }
    if files.is_empty() {
        return Err(no_match(pattern));
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(FileList { name: pattern.to_owned(), files, identity: None })
}

fn no_match(pattern: &str) -> Problem {
    let problem = Problem::new(ProblemCode::InputNotFound, format!("no input file matches `{pattern}`"));
    if pattern.contains('[') {
        return problem.hint("check the pattern; write a `[` in a name as `[[]`");
    }
    problem.hint("check the pattern; names that start with a dot match only patterns that start with one")
}

/// The common format of all files of a list. Several files of which none is known to be a table are
/// documents.
pub(crate) fn format_of(spec: &InputSpec, list: &FileList) -> Result<InputFormat, Problem> {
    if let Some(format) = spec.format {
        return Ok(format);
    }
    let known = |file: &InputFile| spec.format_of(&file.name).ok();
    let Some(first) = list.files.first() else { return Ok(InputFormat::Documents) };
    if let [only] = list.files.as_slice() {
        return match (known(only), is_document(&only.name)) {
            (None, true) => Ok(InputFormat::Documents),
            _ => spec.format_of(&only.name),
        };
    }
    let format = known(first);
    match list.files.iter().find(|file| known(file) != format) {
        None if list.files.iter().all(|file| is_spreadsheet(&file.name)) => spec.format_of(&first.name),
        None => Ok(format.unwrap_or(InputFormat::Documents)),
        Some(other) => {
            let message = format!(
                "the files of `{}` have different formats: `{}` and `{}`",
                list.name, first.name, other.name
            );
            Err(Problem::new(ProblemCode::InputFormat, message)
                .hint(format!("choose one with {INPUT_FORMAT}; with `documents`, each file is one row")))
        }
    }
}

/// Whether the extension marks a file as a document. A spreadsheet is not one: whoever names it wants its
/// rows.
fn is_document(name: &str) -> bool {
    const DOCUMENTS: &[&str] = &[
        "pdf", "docx", "doc", "html", "htm", "md", "rtf", "png", "jpg", "jpeg", "gif", "webp", "bmp", "tif",
        "tiff", "heic", "wav", "mp3", "flac", "ogg", "m4a", "mp4", "pptx",
    ];
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| DOCUMENTS.contains(&ending.as_str()))
}
