//! Part of `cargo xtask layers`: below the entry points no code reads the environment or changes state of the
//! whole process, because users of the library decide both.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::workspace::Crate;

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
pub(crate) fn process_state(root: &Path, crates: &[Crate]) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for own in crates.iter().filter(|own| !EXEMPT.contains(&own.name.as_str())) {
        let folder = own.manifest_path.parent().unwrap_or(root).join("src");
        let mut files = Vec::new();
        sources(&folder, &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            let text =
                fs::read_to_string(&file).map_err(Failure::of(format_args!("cannot read `{name}`")))?;
            if !ALLOWED.contains(&name.as_str()) {
                found.extend(forbidden_lines(&name, &text));
            }
        }
    }
    Ok(found)
}

/// The violating lines of a source file, without tests.
#[must_use]
pub fn forbidden_lines(name: &str, text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let named = lines.filter_map(|(index, line)| {
        let what = FORBIDDEN.iter().find(|what| line.contains(**what))?;
        Some(format!("`{name}:{}` has `{what}`", index + 1))
    });
    named.collect()
}

/// The source files in a folder, without tests.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let cannot = || Failure::of(format!("cannot read `{}`", folder.display()));
    for entry in fs::read_dir(folder).map_err(cannot())? {
        let path = entry.map_err(cannot())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, files)?;
        } else if name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs") {
            files.push(path);
        }
    }
    Ok(())
}
