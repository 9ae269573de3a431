//! Part of `cargo xtask layers`: below the entry points nothing reads the environment, and nothing is set for
//! the whole process. Whoever uses the library decides both.

use std::path::Path;

use crate::Failure;
use crate::rust_source::{FileScope, rust_files, without_unit_tests};
use crate::workspace::Crate;

/// Entry points, and what only tests and tasks are built with.
const EXEMPT: &[&str] = &["rowmill-cli", "rowmill-testkit", "xtask"];

/// What reads the environment or changes the process.
const FORBIDDEN: &[&str] = &[
    "env::var",
    "env::args",
    "env::temp_dir",
    "env::current_dir",
    "env::current_exe",
    "env::home_dir",
    "env::set_",
    "tempfile::tempdir()",
    "set_hook",
    "install_default",
    "tokio::signal",
];

/// Files that may: the one that makes an environment of what the process has, where an entry point asks for it.
const ALLOWED: &[&str] = &["crates/rowmill/src/environment.rs"];

/// Every line of these crates that must not be there, with its place.
///
/// # Errors
///
/// A source file cannot be read.
pub(crate) fn process_state(root: &Path, crates: &[Crate]) -> Result<Vec<String>, Failure> {
    let checked: Vec<_> = crates.iter().filter(|own| !EXEMPT.contains(&own.name.as_str())).collect();
    let files = rust_files(root, &checked, FileScope::Sources)?;
    let checked = files.iter().filter(|file| !ALLOWED.contains(&file.name.as_str()));
    Ok(checked.flat_map(|file| forbidden_lines(&file.name, &file.code)).collect())
}

/// The lines of a source file, tests aside, that must not be there.
#[must_use]
pub fn forbidden_lines(name: &str, text: &str) -> Vec<String> {
    let lines =
        without_unit_tests(text).lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let named = lines.filter_map(|(index, line)| {
        let what = FORBIDDEN.iter().find(|what| line.contains(**what))?;
        Some(format!("`{name}:{}` has `{what}`", index + 1))
    });
    named.collect()
}
