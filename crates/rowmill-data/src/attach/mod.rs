//! Files that go with rows: found, checked, read, kept, and their text extracted.

mod archive;
mod examine;
mod load;
mod place;
mod share;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rowmill_core::ports::Attachments;
use rowmill_http::HttpClient;
use rowmill_types::AttachmentRules;

use crate::{Extractor, Location};

/// Which files go with a row, and what is done with them.
#[derive(Debug)]
pub struct AttachmentSpec {
    /// The fields that name files, in the order in which they are sent.
    pub fields: Vec<String>,
    /// Whether the row is a document whose own file is sent, before all others.
    pub documents: bool,
    /// Who extracts text from PDF, DOCX and HTML; without it they are sent as they are.
    pub extract: Option<Extractor>,
    /// The folder in which what was sent is kept.
    pub archive: Option<PathBuf>,
    /// The folder that relative paths in `fields` start from; the current one where it is empty.
    /// The paths of documents always start from the current folder.
    pub base: PathBuf,
    /// What the model takes.
    pub rules: AttachmentRules,
    /// What fetches files that are named by `http://` and `https://` addresses; without it such
    /// rows fail.
    pub http: Option<HttpClient>,
}

/// Makes what brings the files of rows.
///
/// A field holds a path, a `file://`, `data:`, `http://` or `https://` address, or a list of
/// them. Where it is missing, null or empty the row fails, and so it does where a file cannot be
/// had, is empty, broken, too large, or of a kind that the model does not take.
#[must_use]
pub fn attachments(spec: AttachmentSpec) -> Arc<dyn Attachments> {
    Arc::new(load::Loader::new(spec))
}

/// The folder that relative paths in the rows of an input start from: that of the input file, or
/// the folder that was named, or that of a pattern before its first `*`, `?` or `[`. Empty, which
/// means the current one, for everything that is not a file of this machine.
#[must_use]
pub fn folder_of_input(location: &Location) -> PathBuf {
    let parent = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
    match location {
        Location::File(path) if path.is_dir() => path.clone(),
        Location::File(path) => parent(path),
        Location::Pattern(pattern) => {
            let fixed = pattern.split(['*', '?', '[']).next().unwrap_or_default();
            let end = fixed.rfind(std::path::is_separator).map_or(0, |at| at + 1);
            PathBuf::from(fixed.get(..end).unwrap_or_default())
        }
        Location::Stdin | Location::Web(_) | Location::Hub(_) | Location::Files(_) => PathBuf::new(),
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
            let location = Location::parse(input).unwrap();
            assert_eq!(folder_of_input(&location), Path::new(folder), "{input}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(folder_of_input(&Location::File(folder.path().into())), folder.path());
    }
}
