//! The folder that holds what a run needs while it is not finished.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rowmill_types::{Problem, ProblemCode};

const LEDGER: &str = "ledger.jsonl";
const RESERVE: &str = "reserve";
const SPOOL: &str = "input.spool";

/// The work folder of a run. Only files that rowmill put there are ever removed.
#[derive(Debug, Clone)]
pub struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    /// The folder at `path`, made if it is missing.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn open(path: &Path) -> Result<Self, Problem> {
        fs::create_dir_all(path).map_err(|error| {
            Problem::new(
                ProblemCode::WriteFailed,
                format!("cannot make the work folder `{}`", path.display()),
            )
            .cause(error)
            .hint("choose another one with `--work-dir`")
        })?;
        Ok(Self { path: path.to_owned() })
    }

    /// The default place: beside the output.
    #[must_use]
    pub fn beside(output: &Path) -> PathBuf {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        output.with_file_name(format!(".{name}.rowmill"))
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The ledger's path.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.path.join(LEDGER)
    }

    /// Whether there is a ledger.
    #[must_use]
    pub fn has_ledger(&self) -> bool {
        self.ledger().exists()
    }

    /// Where standard input is kept when it has to be read twice.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.path.join(SPOOL)
    }

    pub(super) fn reserve(&self) -> PathBuf {
        self.path.join(RESERVE)
    }

    /// Removes everything but the ledger.
    pub fn tidy(&self) {
        for file in [self.reserve(), self.spool()] {
            // What is not there needs no removing, and a leftover does no harm.
            drop(fs::remove_file(file));
        }
    }

    /// Removes what rowmill put there, and the folder if nothing else is in it.
    ///
    /// # Errors
    ///
    /// The ledger cannot be removed.
    pub fn clear(&self) -> Result<(), Problem> {
        self.tidy();
        match fs::remove_file(self.ledger()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Problem::new(
                ProblemCode::WriteFailed,
                format!("cannot remove the ledger `{}`", self.ledger().display()),
            )
            .cause(error)),
            _ => {
                // A folder with other files in it is the user's and stays.
                drop(fs::remove_dir(&self.path));
                Ok(())
            }
        }
    }
}
