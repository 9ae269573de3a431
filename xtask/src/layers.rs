//! `cargo xtask layers`: crates depend on each other only in the directions of the design, and only entry points
//! know what settings are called.

use std::collections::BTreeSet;

use crate::flag_names::named_flags;
use crate::process_state::process_state;
use crate::workspace::{Crate, Workspace};
use crate::{Failure, talk};

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
    ("rowmill-cards", &["rowmill-core", "rowmill-types"]),
    ("rowmill-data", &["rowmill-core", "rowmill-http", "rowmill-sql", "rowmill-streams", "rowmill-types"]),
    ("rowmill-models", &["rowmill-core", "rowmill-http", "rowmill-types"]),
    ("rowmill-store", &["rowmill-core", "rowmill-types"]),
    ("rowmill-tools", &["rowmill-core", "rowmill-types"]),
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
    ("rowmill-simulator", &["rowmill-core", "rowmill-types"]),
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
/// names a flag below the command line.
pub fn layers(workspace: &Workspace) -> Result<(), Failure> {
    let crates = workspace.own_crates()?;
    for (name, _) in ALLOWED {
        if let Some(own) = crates.iter().find(|own| own.name == *name) {
            let needs: Vec<_> = needs(own, &crates).into_iter().collect();
            talk::say(format_args!("{name:<17} -> {}", needs.join(", ")));
        }
    }
    let mut violations = violations(&crates);
    violations.extend(process_state(workspace.root(), &crates)?);
    if !violations.is_empty() {
        return Err(Failure::new(format!(
            "{}. Move the code to where both may see it, or change the design and `xtask/src/layers.rs` with it",
            violations.join("; ")
        )));
    }
    let flags = named_flags(&crates)?;
    if flags.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}. Name the setting with a constant of `rowmill_types::settings`, and every entry point says it in its own words",
        flags.join("; ")
    )))
}

/// The dependencies in this graph that violate the design.
#[must_use]
pub fn violations(crates: &[Crate]) -> Vec<String> {
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
fn needs<'a>(own: &'a Crate, crates: &[Crate]) -> BTreeSet<&'a str> {
    let own_names: BTreeSet<_> = crates.iter().map(|own| own.name.as_str()).collect();
    let built_with = own.dependencies.iter().filter(|needed| needed.kind.as_deref() != Some("dev"));
    built_with.map(|needed| needed.name.as_str()).filter(|name| own_names.contains(name)).collect()
}
