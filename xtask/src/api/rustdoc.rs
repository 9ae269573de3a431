//! Runs rustdoc on the crates: documentation pages, which must have no warnings, and JSON.
//!
//! Rustdoc writes JSON only if unstable options are allowed. If they were allowed for the whole build, build
//! scripts would run again, and half of the graph would be rebuilt. So cargo runs this program in place of
//! rustdoc, and only the call that writes JSON gets that permission. Cargo then also knows when nothing has
//! changed and nothing needs to be written.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use serde_json::Value;

use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

/// The environment variable that makes this program replace rustdoc, and gives the folder for the JSON.
pub(crate) const JSON_FOLDER: &str = "XTASK_RUSTDOC_JSON";

/// The library, and the crates that it re-exports items of, as rustdoc spells them.
const DESCRIBED: &[&str] = &[
    "rowmill",
    "rowmill_core",
    "rowmill_data",
    "rowmill_engine",
    "rowmill_http",
    "rowmill_models",
    "rowmill_store",
    "rowmill_tools",
    "rowmill_types",
];

/// The crates by name, as they are now.
pub(super) fn describe_crates(workspace: &Workspace) -> Result<BTreeMap<String, Value>, TaskFailure> {
    let folder = workspace.target()?.join("doc").join("json");
    let own = std::env::current_exe().map_err(TaskFailure::context("cannot find this program"))?;
    let status = workspace
        .cargo()
        .args(["doc", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOC", own)
        .env("RUSTDOCFLAGS", flags())
        .env(JSON_FOLDER, &folder)
        .status()
        .map_err(TaskFailure::context("cannot start cargo"))?;
    if !status.success() {
        return Err(TaskFailure::new("`cargo doc` warns or fails; see above"));
    }
    DESCRIBED.iter().map(|name| Ok(((*name).to_owned(), read(&folder, name)?))).collect()
}

/// Warnings are errors. The `cfg`, which no code checks, distinguishes these pages from those of a plain
/// `cargo doc` and of another list: otherwise cargo would consider them fresh and not call this program, and
/// the JSON would be missing.
fn flags() -> String {
    format!("-Dwarnings --cfg=described=\"{}\"", DESCRIBED.join(","))
}

fn read(folder: &Path, name: &str) -> Result<Value, TaskFailure> {
    let path = folder.join(name).with_extension("json");
    let bytes = fs::read(&path).map_err(TaskFailure::context(format_args!(
        "cannot read `{}`; after `cargo clean --doc` it is made anew",
        path.display()
    )))?;
    serde_json::from_slice(&bytes)
        .map_err(TaskFailure::context(format_args!("cannot read `{}`", path.display())))
}

/// Runs rustdoc as cargo requested, and additionally has it describe the crate as JSON.
pub(crate) fn run_as_rustdoc(folder: &OsStr) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let outcome = rustdoc(&arguments, &[]).and_then(|status| match json_arguments(&arguments, folder) {
        Some(arguments) if status.success() => rustdoc(&arguments, &[("RUSTC_BOOTSTRAP", "1")]),
        _ => Ok(status),
    });
    match outcome {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(failure) => {
            printer::note(format_args!("error: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn rustdoc(arguments: &[OsString], variables: &[(&str, &str)]) -> Result<ExitStatus, TaskFailure> {
    let mut command = Command::new("rustdoc");
    command.args(arguments).envs(variables.iter().copied());
    command.status().map_err(TaskFailure::context("cannot start rustdoc"))
}

/// The same call, for JSON; `None` for a crate that is not described.
fn json_arguments(arguments: &[OsString], folder: &OsStr) -> Option<Vec<OsString>> {
    let after = |flag: &str| arguments.iter().position(|argument| argument == flag).map(|at| at + 1);
    let name = arguments.get(after("--crate-name")?)?.to_str()?;
    DESCRIBED.contains(&name).then_some(())?;
    let mut arguments = arguments.to_vec();
    *arguments.get_mut(after("-o")?)? = folder.to_owned();
    arguments.extend(["-Zunstable-options", "--output-format=json"].map(OsString::from));
    Some(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_described_crate_is_written_as_json_to_the_folder_and_another_is_not() {
        let call = |name: &str| {
            ["--crate-name", name, "src/lib.rs", "-o", "doc", "-Dwarnings"].map(OsString::from).to_vec()
        };
        let expected =
            ["--crate-name", "rowmill", "src/lib.rs", "-o", "json", "-Dwarnings", "-Zunstable-options"];
        let mut expected = expected.map(OsString::from).to_vec();
        expected.push("--output-format=json".into());
        assert_eq!(json_arguments(&call("rowmill"), OsStr::new("json")), Some(expected));
        assert_eq!(json_arguments(&call("xtask"), OsStr::new("json")), None);
    }
}
