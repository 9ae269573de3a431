//! Whether a pattern or folder as input would include a file that does not exist yet.

use std::path::{Path, PathBuf};

use crate::input_format::format_from_name;
use crate::{InputFormat, InputLocation, InputSpec, base_folder_of_input};

/// Whether a run over this input would read a file at `path`, an absolute path without links. An input that
/// is a single file or remote reads nothing but itself.
#[must_use]
pub fn input_would_read(input: &InputSpec, path: &Path) -> bool {
    match &input.location {
        InputLocation::Pattern(pattern) => pattern_matches(pattern, path),
        InputLocation::File(folder) if folder.is_dir() => folder_holds(folder, path, input.format),
        InputLocation::Stdin
        | InputLocation::File(_)
        | InputLocation::Web(_)
        | InputLocation::Hub(_)
        | InputLocation::Files(_) => false,
    }
}

fn pattern_matches(pattern: &str, path: &Path) -> bool {
    let folder = base_folder_of_input(&InputLocation::Pattern(pattern.to_owned()));
    let rest = pattern.get(folder.as_os_str().len()..).unwrap_or_default();
    let Some(folder) = full_folder(&folder) else { return false };
    let full = format!("{}/{rest}", glob::Pattern::escape(folder.trim_end_matches('/')));
    crate::pattern::matches(&full, path)
}

/// Names with a leading dot are left out below the folder, not above it.
fn folder_holds(folder: &Path, path: &Path, format: Option<InputFormat>) -> bool {
    let Some(folder) = full_folder(folder) else { return false };
    let Ok(inside) = path.strip_prefix(&folder) else { return false };
    let hidden = inside.iter().any(|part| part.as_encoded_bytes().starts_with(b"."));
    let fits = match format.or_else(|| format_from_name(&folder)) {
        None | Some(InputFormat::Documents) => true,
        format => format_from_name(&path.display().to_string()) == format,
    };
    !hidden && fits
}

/// A folder that does not exist holds nothing that could be read.
fn full_folder(folder: &Path) -> Option<String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let full: PathBuf = folder.canonicalize().ok()?;
    full.into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_pattern_or_a_folder_takes_in_files_that_are_not_there_yet() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("parts/deep")).unwrap();
        let given = root.display();
        for (input, path, expected) in [
            (format!("{given}/parts/*.jsonl"), "parts/out.jsonl", true),
            (format!("{given}/parts/*.jsonl"), "parts/deep/out.jsonl", false),
            (format!("{given}/parts/**/*.jsonl"), "parts/deep/new/out.jsonl", true),
            (format!("{given}/parts/*.jsonl"), "parts/.hidden.jsonl", false),
            (format!("{given}/parts/*.jsonl"), "out.jsonl", false),
            (format!("{given}/parts/../parts/in-*.jsonl"), "parts/in-results.jsonl", true),
            (format!("{given}/parts"), "parts/deep/new/out.jsonl", true),
            (format!("{given}/parts"), "parts/.out.jsonl.rowmill/run.json", false),
            (format!("{given}/parts"), "partsx/out.jsonl", false),
        ] {
            let spec = InputSpec::new(InputLocation::parse(&input).unwrap(), None);
            assert_eq!(input_would_read(&spec, &root.join(path)), expected, "{input} {path}");
        }
        let tables = InputSpec::new(InputLocation::File(root.join("parts")), Some(InputFormat::Jsonl));
        assert!(input_would_read(&tables, &root.join("parts/out.jsonl")));
        assert!(!input_would_read(&tables, &root.join("parts/out.csv")));
    }
}
