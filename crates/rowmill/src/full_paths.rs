//! Paths as headers of runs have them.

use std::path::Path;

/// The full path of a file, whether it is there or not.
pub(crate) fn full_path_text(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}
