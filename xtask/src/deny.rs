//! `cargo xtask deny`: runs cargo-deny if it is installed.

use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

/// Checks licences, bans and sources with cargo-deny.
pub(crate) fn deny(workspace: &Workspace) -> Result<(), TaskFailure> {
    let installed = workspace.cargo().args(["deny", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        printer::note(
            "cargo-deny is not installed: get it with `cargo install --locked cargo-deny`. \
             `cargo xtask licences` checks licences without it.",
        );
        return Ok(());
    }
    // Without advisories: their database is a separate repository, which may be unreachable. Not offline:
    // crates of other platforms are checked too, and a build never fetches them.
    let status = workspace
        .cargo()
        .args(["deny", "check", "licenses", "bans", "sources"])
        .status()
        .map_err(TaskFailure::context("cannot start cargo-deny"))?;
    if status.success() { Ok(()) } else { Err(TaskFailure::new("cargo-deny found something; see above")) }
}
