//! Checks that crates below the command line name no flags in their messages: only entry points know what
//! settings are called there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::workspace::Crate;

/// Crates whose messages go directly to users of commands, or to nobody.
const MAY_NAME_FLAGS: &[&str] = &["rowmill-cli", "rowmill-simulator", "rowmill-testkit", "xtask"];

/// Flags of other programs with the name of one of rowmill's: the end of a path, and the flag.
const OF_OTHERS: &[(&str, &str)] = &[];

/// Every flag of rowmill that a text of a crate below the command line names, with its location.
///
/// # Errors
///
/// A source cannot be read.
pub fn named_flags(crates: &[Crate]) -> Result<Vec<String>, Failure> {
    let mut flags = BTreeSet::new();
    collect_flags(&rowmill_cli::command(), &mut flags);
    let mut found = Vec::new();
    for own in crates.iter().filter(|own| !MAY_NAME_FLAGS.contains(&own.name.as_str())) {
        let folder = own.manifest_path.parent().unwrap_or(Path::new("")).join("src");
        for path in sources(&folder)? {
            let code = fs::read_to_string(&path).map_err(Failure::of("a source cannot be read"))?;
            let of_others =
                |flag: &str| OF_OTHERS.iter().any(|(end, own)| *own == flag && path.ends_with(end));
            for flag in flags_in_texts(&code, &flags).into_iter().filter(|flag| !of_others(flag)) {
                found.push(format!("`{}` names the flag `--{flag}`", path.display()));
            }
        }
    }
    Ok(found)
}

/// The flags that the texts of some code name, without tests.
#[must_use]
pub fn flags_in_texts(code: &str, flags: &BTreeSet<String>) -> Vec<String> {
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut found = Vec::new();
    for text in texts(code) {
        let words = text.split(|letter: char| !is_of_name(letter));
        let names = words.filter_map(|word| word.strip_prefix("--"));
        found.extend(names.filter(|name| flags.contains(*name)).map(str::to_owned));
    }
    found
}

fn collect_flags(command: &clap::Command, flags: &mut BTreeSet<String>) {
    flags.extend(command.get_arguments().filter_map(|argument| argument.get_long()).map(str::to_owned));
    command.get_subcommands().for_each(|command| collect_flags(command, flags));
}

/// The sources in a folder, without tests.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(Failure::of("a folder of sources cannot be read"))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            found.extend(sources(&path)?);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The string literals of some code. Comments are skipped: nobody who runs the code sees them.
fn texts(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = code.chars().peekable();
    let mut before = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '/' if letters.peek() == Some(&'/') => {
                letters.by_ref().find(|letter| *letter == '\n');
            }
            '"' => {
                let hashes = before.chars().rev().take_while(|letter| *letter == '#').count();
                let is_raw = before.trim_end_matches('#').ends_with('r');
                found.push(if is_raw { raw_text(&mut letters, hashes) } else { text(&mut letters) });
            }
            // A character literal may contain a quote; a lifetime has no closing mark.
            '\'' => {
                let first = letters.next();
                if first == Some('\\') {
                    letters.next();
                }
                letters.next_if_eq(&'\'');
            }
            _ => {}
        }
        if !matches!(letter, '#' | 'r') {
            before.clear();
        }
        before.push(letter);
    }
    found
}

/// The rest of a literal after its first quote.
fn text(letters: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => {
                letters.next();
                text.push(' ');
            }
            _ => text.push(letter),
        }
    }
    text
}

/// The rest of a raw literal after its first quote.
fn raw_text(letters: &mut impl Iterator<Item = char>, hashes: usize) -> String {
    let end = format!("\"{}", "#".repeat(hashes));
    let mut text = String::new();
    for letter in letters {
        text.push(letter);
        if text.ends_with(&end) {
            text.truncate(text.len() - end.len());
            break;
        }
    }
    text
}
