//! A folder as an input: a table in parts, or documents.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rowmill_types::settings::{INPUT, INPUT_FORMAT};
use rowmill_types::{Problem, ProblemCode};

use crate::folder_walk::files_below;
use crate::input_format::format_from_name;
use crate::partition::{add_partition_fields, partition_values};
use crate::{FileList, InputFile, InputFormat};

/// The files of a folder, and their format.
///
/// They are parts of one table if the format is named, if the folder is named like a file of a table, such as
/// `rows.parquet`, or if all of them are files of one such format in folders such as `year=2026`. Otherwise
/// every file is a document.
pub(crate) fn files_of_folder(
    path: &Path,
    format: Option<InputFormat>,
) -> Result<(FileList, InputFormat), Problem> {
    let named = format.or_else(|| format_from_name(&path.display().to_string()));
    let (files, format) = match named {
        Some(InputFormat::Documents) => (files_below(path, |_| true)?, InputFormat::Documents),
        Some(format) => (parts(files_below(path, is_part)?, format), format),
        None => match partitioned(path)? {
            Some(found) => found,
            None => (files_below(path, |_| true)?, InputFormat::Documents),
        },
    };
    let name = path.display().to_string();
    if files.is_empty() {
        return Err(no_file(&name, format));
    }
    let file = |path: PathBuf| {
        let name = path.display().to_string();
        InputFile::new(path, name)
    };
    let mut files: Vec<_> = files.into_iter().map(file).collect();
    if format != InputFormat::Documents {
        add_partition_fields(path, &mut files)?;
    }
    Ok((FileList { name, files, identity: None }, format))
}

/// Whether a file or folder holds a part of a table. Programs that write tables in parts also write
/// `_SUCCESS`, `_metadata` and the like.
fn is_part(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    !bytes.starts_with(b"_") || bytes.contains(&b'=')
}

/// The files of a table: those with an extension of its format. Some programs write JSON lines into `.json`
/// files, and some name parts `part-00000`; these count only if there are no others.
fn parts(files: Vec<PathBuf>, format: InputFormat) -> Vec<PathBuf> {
    let named = |file: &&PathBuf, format| format_from_name(&file.display().to_string()) == Some(format);
    let of =
        |is_wanted: &dyn Fn(&&PathBuf) -> bool| files.iter().filter(is_wanted).cloned().collect::<Vec<_>>();
    let mut found = of(&|file| named(file, format));
    if found.is_empty() && format == InputFormat::Jsonl {
        found = of(&|file| named(file, InputFormat::Json));
    }
    if found.is_empty() {
        let is_part = |name: &OsStr| name.as_encoded_bytes().starts_with(b"part");
        found = of(&|file| file.extension().is_none() && file.file_name().is_some_and(is_part));
    }
    found
}

/// The files of a folder whose subfolders name fields, if all have the same table format.
fn partitioned(path: &Path) -> Result<Option<(Vec<PathBuf>, InputFormat)>, Problem> {
    let files = files_below(path, is_part)?;
    let format = files.first().and_then(|file| format_from_name(&file.display().to_string()));
    let is_like = |file: &PathBuf| {
        format_from_name(&file.display().to_string()) == format && !partition_values(path, file).is_empty()
    };
    Ok(format.filter(|_| files.iter().all(is_like)).map(|format| (files, format)))
}

fn no_file(folder: &str, format: InputFormat) -> Problem {
    let (kind, hint) = match format {
        InputFormat::Documents => (
            String::new(),
            format!("check the path given to {INPUT}; files whose name starts with a dot are skipped"),
        ),
        format => (
            format!("{} ", format.name()),
            format!(
                "check the path given to {INPUT}; files whose name starts with a dot or `_` are skipped; use \
                 {INPUT_FORMAT} for another format"
            ),
        ),
    };
    Problem::new(ProblemCode::InputNotFound, format!("no {kind}file in folder `{folder}`")).hint(hint)
}
