//! Part of `cargo xtask layers`: below the entry points no code reads the environment or changes state of the
//! whole process, because users of the library decide both.

use std::path::Path;

use crate::TaskFailure;
use crate::rust_source::{rust_files, without_unit_tests};
use crate::workspace::WorkspaceCrate;

/// Entry points, and crates that are used only by tests and tasks.
const EXEMPT: &[&str] = &["rowmill-cli", "rowmill-testkit", "xtask"];

/// Calls that read the environment or change the process.
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

/// Exempt files: the one that creates an environment from the process's variables, if an entry point asks for
/// it.
const ALLOWED: &[&str] = &["crates/rowmill/src/environment.rs"];

/// Every violating line of these crates, with its location.
///
/// # Errors
///
/// A source file cannot be read.
pub(crate) fn find_process_state_uses(
    root: &Path,
    crates: &[WorkspaceCrate],
) -> Result<Vec<String>, TaskFailure> {
    let checked: Vec<_> = crates.iter().filter(|own| !EXEMPT.contains(&own.name.as_str())).collect();
    let files = rust_files(root, &checked)?;
    let checked = files.iter().filter(|file| !ALLOWED.contains(&file.name.as_str()));
    Ok(checked.flat_map(|file| forbidden_lines(&file.name, &file.code)).collect())
}

/// The violating lines of a source file, without tests.
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
