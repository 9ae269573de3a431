//! The destinations of tables.

use std::fs;
use std::path::{Path, PathBuf};

use rowmill_types::settings::{OUTPUT, OUTPUT_DIR, OVERWRITE, RESUME};
use rowmill_types::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draft::listed_tables;
use crate::output::{OutputClaimMode, OutputFile, StandardOutput, check_folder_of, link_target};

/// The prefix of rowmill's own files in a folder of tables.
pub(super) const OWN_NAMES: &str = ".rowmill";

/// The list of the tables in a folder.
pub(super) const LIST: &str = ".rowmill.parts";

/// The suffix of unfinished tables.
pub(super) const UNFINISHED: &str = ".rowmill-new";

/// Destination of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TableTarget {
    /// A file.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// A folder with one file for each value of a field.
    Folder {
        /// The folder; created if it does not exist.
        path: PathBuf,
        /// The field; use dots for nested objects.
        split_by: String,
    },
}

impl TableTarget {
    /// Checks that the table could be written there, without touching anything.
    ///
    /// # Errors
    ///
    /// It exists but must not, its folder cannot be created, or it is of the wrong type.
    pub fn check(&self, claim: OutputClaimMode) -> Result<(), Problem> {
        match self {
            Self::File(path) => OutputFile::check_claimable(path, OUTPUT, claim),
            Self::Stdout => StandardOutput::check(),
            Self::Folder { path, .. } => check_folder(path, claim),
        }
    }

    /// Whether a table already exists there.
    #[must_use]
    pub fn exists(&self) -> bool {
        match self {
            Self::File(path) => path.exists(),
            Self::Stdout => false,
            Self::Folder { path, .. } => path.join(LIST).exists(),
        }
    }
}

fn check_folder(path: &Path, claim: OutputClaimMode) -> Result<(), Problem> {
    let shown = path.display();
    if path.exists() && !path.is_dir() {
        let message = format!("`{shown}`, given to {OUTPUT_DIR}, is not a folder");
        return Err(Problem::new(ProblemCode::OutputPath, message).hint("choose another path"));
    }
    check_folder_of(path, OUTPUT_DIR)?;
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(OWN_NAMES);
    if claim == OutputClaimMode::New && entries.into_iter().any(|entry| !own(&entry.file_name())) {
        let message = format!("output folder `{shown}` is not empty");
        return Err(Problem::new(ProblemCode::OutputExists, message).hint(format!(
            "use {RESUME} to continue the run, or {OVERWRITE} to replace what rowmill created there"
        )));
    }
    Ok(())
}

/// The tables that earlier runs put into a folder.
#[must_use]
pub fn listed_table_paths(folder: &Path) -> Vec<PathBuf> {
    listed_tables(folder).into_iter().map(|name| folder.join(name)).collect()
}

/// Removes what a crash left of unfinished tables. Only for a caller that has claimed the run of that table.
pub fn remove_table_leftovers(target: &TableTarget) {
    let (folder, begins) = match target {
        TableTarget::Stdout => return,
        TableTarget::File(path) => {
            let path = link_target(path);
            (folder_of(&path).to_owned(), temp_name_prefix(&path))
        }
        TableTarget::Folder { path, .. } => (path.clone(), OWN_NAMES.to_owned()),
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&begins) && name.ends_with(UNFINISHED) {
            // A file that cannot be removed does no harm.
            drop(fs::remove_file(entry.path()));
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The prefix of the temporary files that are to replace `path`.
pub(super) fn temp_name_prefix(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy())
}
