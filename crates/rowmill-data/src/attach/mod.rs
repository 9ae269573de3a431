//! Attachments: files that are sent with rows. They are located, checked, read, archived, and their text can
//! be extracted.

mod archive;
mod attached_file;
mod file_checks;
mod file_memory;
mod load;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::ports::AttachmentLoader;
use rowmill_http::HttpClient;
use rowmill_types::AttachmentRules;

use crate::{InputLocation, TextExtractor};

/// Which files are sent with a row, and how they are handled.
#[derive(Debug)]
pub struct AttachmentSpec {
    /// The fields that name files, in the order in which the files are sent.
    pub fields: Vec<String>,
    /// Whether each row is a document whose own file is sent, before all others.
    pub documents: bool,
    /// How text is extracted from PDF, DOCX and HTML; without it, these are sent as they are.
    pub extract: Option<TextExtractor>,
    /// The folder in which sent files are archived.
    pub archive: Option<PathBuf>,
    /// The folder that relative paths in `fields` start from; if empty, the current one. The paths of
    /// documents always start from the current folder.
    pub base: PathBuf,
    /// What the model accepts.
    pub rules: AttachmentRules,
    /// Fetches files that are given as `http://` and `https://` addresses; without it, such rows fail.
    pub http: Option<HttpClient>,
}

/// Builds the loader for the files of rows.
///
/// A field holds a path, a `file://`, `data:`, `http://` or `https://` address, or a list of them. The row
/// fails if the field is missing, null or empty, or if a file cannot be read or fetched, is empty, broken,
/// too large, or of a type that the model does not accept.
#[must_use]
pub fn attachment_loader(spec: AttachmentSpec) -> Arc<dyn AttachmentLoader> {
    Arc::new(load::RowFileLoader::new(spec))
}

/// The folder that relative paths in the rows of an input start from: the folder of the input file, the input
/// folder itself, or the folder of a pattern before its first `*`, `?` or `[`. For everything that is not a
/// local file it is empty, which means the current folder.
#[must_use]
pub fn base_folder_of_input(location: &InputLocation) -> PathBuf {
    let parent = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
    match location {
        InputLocation::File(path) if path.is_dir() => path.clone(),
        InputLocation::File(path) => parent(path),
        InputLocation::Pattern(pattern) => {
            let fixed = pattern.split(['*', '?', '[']).next().unwrap_or_default();
            let end = fixed.rfind(std::path::is_separator).map_or(0, |at| at + 1);
            PathBuf::from(fixed.get(..end).unwrap_or_default())
        }
        InputLocation::Stdin | InputLocation::Web(_) | InputLocation::Hub(_) | InputLocation::Files(_) => {
            PathBuf::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_start_from_the_folder_of_the_input() {
        for (input, folder) in [
            ("data/rows.jsonl", "data"),
            ("rows.jsonl", ""),
            ("/a/rows.jsonl", "/a"),
            ("data/*/rows-?.jsonl", "data/"),
            ("*.jsonl", ""),
            ("-", ""),
            ("https://example.com/rows.jsonl", ""),
        ] {
            let location = InputLocation::parse(input).unwrap();
            assert_eq!(base_folder_of_input(&location), Path::new(folder), "{input}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(base_folder_of_input(&InputLocation::File(folder.path().into())), folder.path());
    }
}
