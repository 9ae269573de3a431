//! `cargo xtask layers`: crates depend on each other only in the directions of the design, only entry points
//! know what settings are called, the map names files that exist, and everything has an ordinary name.

use std::collections::BTreeSet;

use crate::architecture::missing_paths;
use crate::flag_names::find_named_flags;
use crate::plain_words::find_avoided_words;
use crate::process_state::find_process_state_uses;
use crate::workspace::{Workspace, WorkspaceCrate};
use crate::{TaskFailure, printer};

/// Each crate and its allowed dependencies, lowest first. Dependencies for tests are not restricted.
///
/// Adapters (data, models, store, tools) see neither each other nor the engine; only `rowmill` names
/// adapters; only the command line ships the simulator; only tests and tasks depend on the testkit.
const ALLOWED: &[(&str, &[&str])] = &[
    ("rowmill-types", &[]),
    ("rowmill-core", &["rowmill-types"]),
    ("rowmill-http", &["rowmill-types"]),
    ("rowmill-engine", &["rowmill-core", "rowmill-types"]),
    ("rowmill-sql", &["rowmill-types"]),
    ("rowmill-streams", &[]),
    ("rowmill-schema-faker", &[]),
    ("rowmill-cards", &["rowmill-core", "rowmill-types"]),
    ("rowmill-data", &["rowmill-core", "rowmill-http", "rowmill-sql", "rowmill-streams", "rowmill-types"]),
    ("rowmill-models", &["rowmill-core", "rowmill-http", "rowmill-schema-faker", "rowmill-types"]),
    ("rowmill-store", &["rowmill-core", "rowmill-types"]),
    ("rowmill-tools", &["rowmill-core", "rowmill-http", "rowmill-types"]),
    (
        "rowmill",
        &[
            "rowmill-cards",
            "rowmill-core",
            "rowmill-data",
            "rowmill-engine",
            "rowmill-http",
            "rowmill-models",
            "rowmill-store",
            "rowmill-tools",
            "rowmill-types",
        ],
    ),
    ("rowmill-simulator", &["rowmill-core", "rowmill-schema-faker", "rowmill-types"]),
    ("rowmill-cli", &["rowmill", "rowmill-simulator"]),
    ("rowmill-testkit", &["rowmill-core", "rowmill-simulator", "rowmill-types"]),
    (
        "xtask",
        &["rowmill", "rowmill-cli", "rowmill-core", "rowmill-data", "rowmill-testkit", "rowmill-types"],
    ),
];

/// Prints the graph and checks it.
///
/// # Errors
///
/// A crate depends on another one that it must not see, reads the environment below the entry points, or
/// names a flag below the command line, or a name, a message or a page has a word that is avoided.
pub fn check_layers(workspace: &Workspace) -> Result<(), TaskFailure> {
    let crates = workspace.own_crates()?;
    for (name, _) in ALLOWED {
        if let Some(own) = crates.iter().find(|own| own.name == *name) {
            let needs: Vec<_> = needs(own, &crates).into_iter().collect();
            printer::say(format_args!("{name:<20} -> {}", needs.join(", ")));
        }
    }
    let mut misplaced = layer_violations(&crates);
    misplaced.extend(find_process_state_uses(workspace.root(), &crates)?);
    refuse(
        &misplaced,
        "Move the code to where both may see it, or change the design and `xtask/src/layers.rs` with it",
    )?;
    refuse(
        &find_named_flags(workspace.root(), &crates)?,
        "Name the setting with a constant of `rowmill_types::settings`, so that every entry point can word it",
    )?;
    refuse(&missing_paths(workspace.root())?, "Name the file where it is now")?;
    refuse(
        &find_avoided_words(workspace.root())?,
        "If the word is the ordinary one there, add it with the reason to `xtask/src/plain_words.rs`",
    )
}

/// An error with all that was found and what to do about it, if anything was found.
fn refuse(found: &[String], advice: &str) -> Result<(), TaskFailure> {
    if found.is_empty() {
        return Ok(());
    }
    Err(TaskFailure::new(format!("{}. {advice}", found.join("\n"))))
}

/// The dependencies in this graph that violate the design.
#[must_use]
pub fn layer_violations(crates: &[WorkspaceCrate]) -> Vec<String> {
    let mut found = Vec::new();
    for own in crates {
        let Some((name, allowed)) = ALLOWED.iter().find(|(name, _)| *name == own.name) else {
            found.push(format!("`{}` has no place in the graph", own.name));
            continue;
        };
        for needed in needs(own, crates) {
            if !allowed.contains(&needed) {
                found.push(format!("`{name}` must not depend on `{needed}`"));
            }
        }
    }
    found
}

/// The crates of the workspace that this one depends on, without those for tests.
fn needs<'a>(own: &'a WorkspaceCrate, crates: &[WorkspaceCrate]) -> BTreeSet<&'a str> {
    let own_names: BTreeSet<_> = crates.iter().map(|own| own.name.as_str()).collect();
    let built_with = own.dependencies.iter().filter(|needed| needed.kind.as_deref() != Some("dev"));
    built_with.map(|needed| needed.name.as_str()).filter(|name| own_names.contains(name)).collect()
}
