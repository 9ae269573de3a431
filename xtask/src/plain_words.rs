//! Part of `cargo xtask layers`: no private metaphor in messages and documentation.
//!
//! The words are ordinary English, and each once was the name of something here that no stranger could guess.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::rust_source::{rust_files, without_unit_tests, words};
use crate::workspace::Crate;

/// A word and what to write instead.
struct Metaphor {
    word: &'static str,
    instead: &'static str,
}

const fn metaphor(word: &'static str, instead: &'static str) -> Metaphor {
    Metaphor { word, instead }
}

/// Words that no sentence for users needs. Those that are also plain English in one phrase are allowed in it.
const IN_PROSE: &[Metaphor] = &[
    metaphor("cast", "agent graph"),
    metaphor("casting", "worker assignment"),
    metaphor("course", "row state"),
    metaphor("crew", "row worker"),
    metaphor("flight", "in flight"),
    metaphor("graves", "process reaper"),
    metaphor("happening", "step event"),
    metaphor("happenings", "step events"),
    metaphor("heed", "handle"),
    metaphor("heeds", "handles"),
    metaphor("said", "set, reported"),
    metaphor("scene", "worker context"),
    metaphor("shelf", "item table"),
    metaphor("speaker", "agent name"),
    metaphor("staff", "workers"),
    metaphor("told", "reported, shown"),
    metaphor("turnstile", "backpressure"),
    metaphor("voice", "model role"),
    metaphor("voices", "model roles"),
];

/// Phrases in which such a word is plain English, or a word of SQL.
const PLAIN_PHRASES: &[&str] = &["in flight", "in-flight", "of course"];

/// Crates and pages in which `cast` is SQL's.
const ABOUT_SQL: &[&str] =
    &["crates/rowmill-sql/", "/sql/", "/sql.md", "0013-", "0022-", "typed_sql", "duckdb"];

/// Every private metaphor in the code of some crates and in the pages beside it, with its place.
///
/// # Errors
///
/// A file cannot be read.
pub fn private_metaphors(root: &Path, crates: &[Crate]) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let crates: Vec<_> = crates.iter().collect();
    for file in rust_files(root, &crates)? {
        // This list has to spell them.
        if file.name.ends_with("plain_words.rs") {
            continue;
        }
        for word in words(without_unit_tests(&file.code))? {
            found.extend(words_in_prose(&format!("{}:{}", file.name, word.line), &word.text));
        }
    }
    for page in pages(root)? {
        let name = page.strip_prefix(root).unwrap_or(&page).display().to_string();
        let text = fs::read_to_string(&page).map_err(Failure::of(format_args!("cannot read `{name}`")))?;
        for (index, line) in text.lines().enumerate() {
            found.extend(words_in_prose(&format!("{name}:{}", index + 1), line));
        }
    }
    Ok(found)
}

/// The metaphors in a sentence.
#[must_use]
pub fn words_in_prose(place: &str, text: &str) -> Vec<String> {
    let mut text = text.to_lowercase();
    for phrase in PLAIN_PHRASES {
        text = text.replace(phrase, "");
    }
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: Vec<_> = text.split(|letter: char| !is_of_word(letter)).collect();
    let metaphors = IN_PROSE.iter().filter(|metaphor| words.contains(&metaphor.word));
    let metaphors = metaphors.filter(|metaphor| !(metaphor.word == "cast" && is_about_sql(place)));
    metaphors.map(|metaphor| problem(place, metaphor.word, metaphor)).collect()
}

fn is_about_sql(place: &str) -> bool {
    ABOUT_SQL.iter().any(|part| place.contains(part))
}

fn problem(place: &str, found: &str, metaphor: &Metaphor) -> String {
    format!("`{place}` has `{found}`: say {}", metaphor.instead)
}

/// The pages that people read. What happened once keeps its words in the changelog.
fn pages(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut pages = Vec::new();
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        pages.push(root.join(name));
    }
    for folder in ["docs", "examples"] {
        collect_pages(&root.join(folder), &mut pages)?;
    }
    pages.sort();
    Ok(pages)
}

fn collect_pages(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let cannot = || Failure::of(format!("cannot read `{}`", folder.display()));
    for entry in fs::read_dir(folder).map_err(cannot())? {
        let path = entry.map_err(cannot())?.path();
        if path.is_dir() {
            collect_pages(&path, pages)?;
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
    Ok(())
}
