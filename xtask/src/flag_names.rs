//! Checks that crates below the command line name no flags in their messages: only entry points know what
//! settings are called there.

use std::collections::BTreeSet;
use std::path::Path;

use crate::TaskFailure;
use crate::rust_source::{rust_files, texts, without_unit_tests};
use crate::workspace::WorkspaceCrate;

/// Crates whose messages go directly to users of commands, or to nobody.
const MAY_NAME_FLAGS: &[&str] = &["rowmill-cli", "rowmill-simulator", "rowmill-testkit", "xtask"];

/// Every flag of rowmill that a text of a crate below the command line names, with its place.
///
/// # Errors
///
/// A source cannot be read.
pub fn find_named_flags(root: &Path, crates: &[WorkspaceCrate]) -> Result<Vec<String>, TaskFailure> {
    let mut flags = BTreeSet::new();
    collect_flags(&rowmill_cli::clap_command(), &mut flags);
    let checked: Vec<_> = crates.iter().filter(|own| !MAY_NAME_FLAGS.contains(&own.name.as_str())).collect();
    let mut found = Vec::new();
    for file in rust_files(root, &checked)? {
        for flag in flags_in_texts(&file.code, &flags)? {
            found.push(format!("`{}` names the flag `--{flag}`", file.name));
        }
    }
    Ok(found)
}

/// The flags that the texts of some code name, tests aside. Comments are skipped: users never see them.
///
/// # Errors
///
/// The code is not Rust.
pub fn flags_in_texts(code: &str, flags: &BTreeSet<String>) -> Result<Vec<String>, TaskFailure> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut found = Vec::new();
    for text in texts(without_unit_tests(code))? {
        let parts = text.split(|letter: char| !is_of_name(letter));
        let names = parts.filter_map(|part| part.strip_prefix("--"));
        found.extend(names.filter(|name| flags.contains(*name)).map(str::to_owned));
    }
    Ok(found)
}

fn collect_flags(command: &clap::Command, flags: &mut BTreeSet<String>) {
    flags.extend(command.get_arguments().filter_map(|argument| argument.get_long()).map(str::to_owned));
    command.get_subcommands().for_each(|command| collect_flags(command, flags));
}
