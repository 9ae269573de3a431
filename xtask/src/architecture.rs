//! Part of `cargo xtask layers`: `ARCHITECTURE.md` names only files and folders that exist.

use std::fs;
use std::path::Path;

use crate::TaskFailure;

/// Where the files are that the page may name.
const FOLDERS: &[&str] = &["crates", "xtask", "docs", "scripts", "examples", ".ci"];
/// How names of files end, and of folders.
const PATH_ENDS: &[&str] = &[".rs", ".md", ".toml", ".json", ".txt", ".py", "/"];

/// Every path that the page names and that is neither a file nor a folder, nor the end of the path of one.
///
/// # Errors
///
/// The page or a folder cannot be read.
pub(crate) fn missing_paths(root: &Path) -> Result<Vec<String>, TaskFailure> {
    let page = fs::read_to_string(root.join("ARCHITECTURE.md"))
        .map_err(TaskFailure::context("cannot read `ARCHITECTURE.md`"))?;
    let mut known = Vec::new();
    for folder in FOLDERS {
        collect(root, &root.join(folder), &mut known)?;
    }
    let exists = |path: &str| {
        root.join(path).exists() || known.iter().any(|known| known.ends_with(&format!("/{path}")))
    };
    let missing = paths_in(&page).into_iter().filter(|path| !exists(path));
    Ok(missing.map(|path| format!("`ARCHITECTURE.md` names `{path}`, which is not there")).collect())
}

/// The names in backticks that look like paths.
#[must_use]
pub fn paths_in(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| {
        PATH_ENDS.iter().any(|end| text.ends_with(end))
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/_-.".contains(letter))
            && !text.starts_with('.')
    };
    quoted.filter(is_path).collect()
}

/// The paths below a folder from the root; those of folders end in `/`.
fn collect(root: &Path, folder: &Path, known: &mut Vec<String>) -> Result<(), TaskFailure> {
    let cannot = || TaskFailure::context(format!("cannot read `{}`", folder.display()));
    for entry in fs::read_dir(folder).map_err(cannot())? {
        let path = entry.map_err(cannot())?.path();
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if path.is_dir() {
            collect(root, &path, known)?;
            known.push(format!("/{name}/"));
        } else {
            known.push(format!("/{name}"));
        }
    }
    Ok(())
}
