//! Writes the documents, or reports which are stale.

use std::fs;
use std::path::Path;

use super::{cli, errors, exit_codes, run_spec};
use crate::{TaskFailure, printer};

/// How to treat a document that differs from the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentMode {
    /// It is written.
    Write,
    /// It is reported, and the task fails.
    Check,
}

/// Generates all documents below `root`, or checks that they are up to date.
///
/// # Errors
///
/// A document cannot be written, or is stale and was only to be checked.
pub fn generate_documents(root: &Path, mode: DocumentMode) -> Result<(), TaskFailure> {
    let documents = [
        ("docs/cli.md", cli::document(rowmill_cli::clap_command())),
        ("docs/errors.md", errors::document()),
        ("docs/exit-codes.md", exit_codes::document()),
        ("docs/run-spec.schema.json", run_spec::document()),
    ];
    let mut stale = Vec::new();
    for (name, text) in documents {
        let path = root.join(name);
        if fs::read_to_string(&path).is_ok_and(|existing| existing == text) {
            continue;
        }
        stale.push(name);
        if mode == DocumentMode::Write {
            let folder = path.parent().unwrap_or(root);
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, &text))
                .map_err(TaskFailure::context(format_args!("cannot write `{name}`")))?;
            printer::say(format_args!("wrote {name}"));
        }
    }
    if mode == DocumentMode::Check && !stale.is_empty() {
        let names = stale.join(", ");
        return Err(TaskFailure::new(format!(
            "stale: {names}. They are made from the code: run `cargo xtask generate` and commit what it writes"
        )));
    }
    Ok(())
}
