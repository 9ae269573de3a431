//! Builds a dataset from an input: which files it has and which reader they need.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_types::settings::{DELIMITER, INPUT, INPUT_FORMAT};
use rowmill_types::{Problem, ProblemCode};

use crate::csv::{self, FieldDelimiter};
use crate::text_dataset::{StreamDataset, TextFilesDataset, open_blocks};
use crate::{FileList, InputFile, InputFormat, InputLocation, InputSpec, documents, parquet};

/// Builds the dataset of a local input, after checking that it exists. Remote inputs must have been fetched
/// before.
///
/// # Errors
///
/// The input is missing or not readable, or its format is unknown.
pub fn open_dataset(spec: &InputSpec) -> Result<Arc<dyn Dataset>, Problem> {
    let Some((list, format)) = local_input_files(spec)? else { return stream(spec, &spec.location) };
    check_delimiter(spec, format)?;
    // A document that cannot be read is a failed row; a table that cannot be read stops the run.
    if format != InputFormat::Documents {
        for file in &list.files {
            fs::File::open(&file.path).map_err(|error| open_problem(&file.path, &error))?;
        }
    }
    match format {
        InputFormat::Documents => documents::documents_dataset(list, spec.document_ids),
        InputFormat::Parquet => parquet::parquet_dataset(list),
        InputFormat::Jsonl | InputFormat::Csv | InputFormat::Tsv | InputFormat::Json => {
            Ok(Arc::new(TextFilesDataset::new(list, format, spec.delimiter)?))
        }
    }
}

/// The files of a local input, with their format; `None` for a stream.
///
/// # Errors
///
/// The input is missing, or its format is unknown.
pub fn local_input_files(spec: &InputSpec) -> Result<Option<(FileList, InputFormat)>, Problem> {
    let list = match &spec.location {
        InputLocation::Stdin => return Ok(None),
        InputLocation::File(path) => {
            let found = fs::metadata(path).map_err(|error| open_problem(path, &error))?;
            if found.is_dir() {
                return crate::folder::files_of_folder(path, spec.format).map(Some);
            }
            if !found.is_file() {
                return Ok(None);
            }
            let name = path.display().to_string();
            let file = InputFile::new(path.clone(), name.clone());
            FileList { name, files: vec![file], identity: None }
        }
        InputLocation::Pattern(pattern) => crate::pattern::files_of(pattern)?,
        InputLocation::Files(list) => list.clone(),
        InputLocation::Web(_) | InputLocation::Hub(_) => {
            let message = format!("`{}` was not downloaded", spec.location.name());
            return Err(Problem::new(ProblemCode::Internal, message));
        }
    };
    let format = crate::pattern::format_of(spec, &list)?;
    Ok(Some((list, format)))
}

/// A stream, which can be read only once: standard input, a named pipe, a device.
fn stream(spec: &InputSpec, location: &InputLocation) -> Result<Arc<dyn Dataset>, Problem> {
    let format = stream_format(spec)?;
    check_delimiter(spec, format)?;
    Ok(Arc::new(StreamDataset::new(location.clone(), format, spec.delimiter)))
}

/// The format of a stream.
pub(crate) fn stream_format(spec: &InputSpec) -> Result<InputFormat, Problem> {
    let name = spec.location.name();
    if spec.location == InputLocation::Stdin && spec.format.is_none() {
        return Err(Problem::new(ProblemCode::Usage, format!("standard input needs {INPUT_FORMAT}")).hint(
            format!(
                "add {input_format}, `csv`, `tsv` or `json`",
                input_format = INPUT_FORMAT.with_value("jsonl")
            ),
        ));
    }
    let format = spec.format_of(&name)?;
    if matches!(format, InputFormat::Documents | InputFormat::Parquet) {
        let message = format!("{} cannot be read from a pipe: `{name}`", format.name());
        return Err(
            Problem::new(ProblemCode::InputFormat, message).hint("write it to a file and use its path")
        );
    }
    Ok(format)
}

/// Rejects a delimiter for a format that has none.
fn check_delimiter(spec: &InputSpec, format: InputFormat) -> Result<(), Problem> {
    if spec.delimiter.is_none() || format.is_untyped() {
        return Ok(());
    }
    let name = spec.location.name();
    let message = format!("{DELIMITER} is only for CSV and TSV, but `{name}` is read as {}", format.name());
    Err(Problem::new(ProblemCode::Usage, message).hint(format!(
        "omit it, or set the format with {input_format}",
        input_format = INPUT_FORMAT.with_value("csv")
    )))
}

/// The delimiter that was named for an input, if a different one would be detected: only then does it change
/// the rows.
///
/// # Errors
///
/// The input is missing or cannot be read.
pub fn overriding_delimiter_of(spec: &InputSpec) -> Result<Option<FieldDelimiter>, Problem> {
    let Some(named) = spec.delimiter else { return Ok(None) };
    // A stream cannot be examined before it is read.
    let Some((list, format)) = local_input_files(spec)? else { return Ok(Some(named)) };
    csv::overriding_delimiter(named, format, list.files.iter().map(open_blocks))
}

/// Distinguishes a missing input from one without read permission.
pub(crate) fn open_problem(path: &Path, error: &io::Error) -> Problem {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Problem::new(ProblemCode::InputNotFound, format!("input file not found: `{shown}`"))
                .hint(format!("check the path given to {INPUT}"))
        }
        io::ErrorKind::PermissionDenied => Problem::new(
            ProblemCode::InputUnreadable,
            format!("no permission to read the input file: `{shown}`"),
        )
        .cause(error)
        .hint("grant yourself read permission"),
        _ => Problem::new(ProblemCode::InputUnreadable, format!("input file cannot be read: `{shown}`"))
            .cause(error)
            .hint(format!("check the path given to {INPUT} and the disk that it is on")),
    }
}
