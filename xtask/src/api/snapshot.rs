//! Writes the snapshot, or compares with it.

use std::collections::BTreeMap;
use std::fs;

use rustdoc_types::Crate;

use super::changes::Changes;
use super::describe::describe;
use super::exports::{Export, exports};
use super::items::{self, Lines};
use super::names::Names;
use crate::generate::Mode;
use crate::workspace::Workspace;
use crate::{Failure, talk};

const FILE: &str = "docs/public-api.txt";
const LIBRARY: &str = "rowmill";

/// Documents all crates, and writes or checks the snapshot of everything that users of the library can name.
///
/// # Errors
///
/// The documentation has warnings, the snapshot cannot be written, or it differs and was only to be checked.
pub fn api(workspace: &Workspace, mode: Mode) -> Result<(), Failure> {
    let lines = surface(&describe(workspace)?, LIBRARY)?;
    let path = workspace.root().join(FILE);
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let changes = Changes::between(&kept.lines().collect::<Vec<_>>(), &lines);
    if changes.is_none() {
        return Ok(());
    }
    if mode == Mode::Check {
        return Err(Failure::new(format!("the public API is not the one in `{FILE}`\n{changes}")));
    }
    fs::write(&path, lines.join("\n") + "\n").map_err(Failure::of(format_args!("cannot write `{FILE}`")))?;
    talk::say(format_args!("{changes}\nwrote {FILE}"));
    Ok(())
}

/// Everything that users of the crate `root` can name, a line for each, in a stable order.
///
/// # Errors
///
/// The crate is not described, or it re-exports an item of a crate that is not.
pub fn surface(crates: &BTreeMap<String, Crate>, root: &str) -> Result<Vec<String>, Failure> {
    let mut exports = exports(crates, root)?;
    // An item is listed under its shortest path.
    exports.sort_by_cached_key(|(path, _)| (path.matches("::").count(), path.clone()));
    let mut names = Names::default();
    let mut lines = Lines::default();
    let mut homes = Vec::new();
    for (path, export) in exports {
        match export {
            Export::Foreign(own) => lines.item(&path, format!("pub use {path} = {own}")),
            Export::Ours(place) => match names.learn(place, &path) {
                Some(known) if known != path => lines.item(&path, format!("pub use {path} = {known}")),
                _ => homes.push((path, place)),
            },
        }
    }
    for (path, place) in homes {
        items::describe(&mut lines, &path, place, &names);
    }
    Ok(lines.0.into_iter().map(|line| line.text).collect())
}
