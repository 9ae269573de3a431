//! Writes the snapshot, or compares with it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::changes::ApiChanges;
use super::lines::FileDescription;
use super::link::link;
use super::rustdoc::describe_crates;
use crate::generate::DocumentMode;
use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

const FILE: &str = "docs/public-api.txt";
const LIBRARY: &str = "rowmill";

/// Documents all crates, and writes or checks the snapshot of everything that users of the library can name.
///
/// # Errors
///
/// The documentation has warnings, the snapshot cannot be written, or it differs and was only to be checked.
pub fn check_api(workspace: &Workspace, mode: DocumentMode) -> Result<(), TaskFailure> {
    let lines = public_surface(describe_crates(workspace)?, LIBRARY)?;
    let path = workspace.root().join(FILE);
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let changes = ApiChanges::between(&kept.lines().collect::<Vec<_>>(), &lines);
    if changes.is_none() {
        return Ok(());
    }
    if mode == DocumentMode::Check {
        return Err(TaskFailure::new(format!("the public API is not the one in `{FILE}`\n{changes}")));
    }
    fs::write(&path, lines.join("\n") + "\n")
        .map_err(TaskFailure::context(format_args!("cannot write `{FILE}`")))?;
    printer::say(format_args!("{changes}\nwrote {FILE}"));
    Ok(())
}

/// What users of the crate `root` can name, a line for each item, in a lasting order. The crates are
/// given by name, as rustdoc describes them in JSON.
///
/// # Errors
///
/// The crate is not among those that are described, re-exports an item of one that is not, or is
/// described in a format that `public-api` does not read.
pub fn public_surface(crates: BTreeMap<String, Value>, root: &str) -> Result<Vec<String>, TaskFailure> {
    let names = crates.keys().cloned().collect();
    let linked = link(crates, root)?;
    // `public-api` reads nothing but files.
    let file =
        tempfile::NamedTempFile::new().map_err(TaskFailure::context("cannot make a temporary file"))?;
    fs::write(file.path(), linked.to_string())
        .map_err(TaskFailure::context("cannot write a temporary file"))?;
    let api = public_api::Builder::from_rustdoc_json(file.path())
        .omit_blanket_impls(true)
        .build()
        .map_err(TaskFailure::context("cannot read what rustdoc wrote"))?;
    FileDescription::new(linked, names, &api).lines(&api)
}
