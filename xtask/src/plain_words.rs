//! Part of `cargo xtask layers`: names, messages and pages do without the private metaphors that this project once
//! had for its parts, so that a newcomer needs no glossary.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

use crate::TaskFailure;
use crate::rust_source::{texts, without_unit_tests};

/// A word that is not used, in all its forms, and the ordinary words for what it stood for.
struct AvoidedWord {
    forms: &'static [&'static str],
    instead: &'static str,
}

const AVOIDED: &[AvoidedWord] = &[
    AvoidedWord { forms: &["cast", "casts"], instead: "agent graph" },
    AvoidedWord { forms: &["casting", "castings"], instead: "worker assignment" },
    AvoidedWord { forms: &["voice", "voices"], instead: "model role" },
    AvoidedWord { forms: &["crew", "crews"], instead: "row worker" },
    AvoidedWord { forms: &["stage", "stages", "staged"], instead: "agent setup, phase" },
    AvoidedWord { forms: &["scene", "scenes"], instead: "worker context" },
    AvoidedWord { forms: &["staff"], instead: "batch workers" },
    AvoidedWord { forms: &["speaker", "speakers"], instead: "worker identity, agent" },
    AvoidedWord { forms: &["course", "courses"], instead: "row state" },
    AvoidedWord { forms: &["walk", "walks", "walked", "walking"], instead: "row execution" },
    AvoidedWord { forms: &["flight", "flights"], instead: "running steps, rows in flight" },
    AvoidedWord { forms: &["happening", "happenings"], instead: "step event" },
    AvoidedWord { forms: &["heed", "heeds", "heeded"], instead: "handle" },
    AvoidedWord { forms: &["shelf", "shelves"], instead: "item table" },
    AvoidedWord { forms: &["turnstile", "turnstiles"], instead: "backpressure" },
    AvoidedWord { forms: &["grave", "graves", "bury", "buried"], instead: "process reaper, reap" },
    AvoidedWord { forms: &["farewell", "farewells"], instead: "close timeout" },
    AvoidedWord { forms: &["parcel", "parcels"], instead: "queued record" },
    AvoidedWord { forms: &["said"], instead: "message, text; reported, declared" },
    AvoidedWord { forms: &["told"], instead: "message, text; reported, distinguished" },
];

/// Names that are avoided only as they are: as part of a sentence, the word is an ordinary verb.
const AVOIDED_NAMES: &[(&str, &str)] = &[("leave", "ticket"), ("Leave", "ticket")];

/// Where an avoided word is the right one.
struct AllowedUse {
    /// How the path starts of the files that may use it; empty for all.
    below: &'static str,
    /// The name or phrase in which it may be used.
    phrase: &'static str,
    /// Why it is the right one; for whoever reads this list.
    _reason: &'static str,
}

const ALLOWED: &[AllowedUse] = &[
    AllowedUse { below: "", phrase: "in flight", _reason: "what other tools call it" },
    AllowedUse { below: "", phrase: "of course", _reason: "has nothing to do with a row" },
    AllowedUse { below: "", phrase: "cast signed", _reason: "a method of the standard library" },
    AllowedUse {
        below: "",
        phrase: "folder walk",
        _reason: "what it is called to visit the files below a folder",
    },
    AllowedUse { below: "crates/rowmill-sql/", phrase: "cast", _reason: "SQL" },
    AllowedUse { below: "crates/rowmill-sql/", phrase: "casts", _reason: "SQL" },
    AllowedUse { below: "crates/rowmill-data/", phrase: "cast", _reason: "SQL" },
    AllowedUse { below: "crates/rowmill-data/", phrase: "casts", _reason: "SQL" },
    AllowedUse { below: "crates/rowmill-cli/tests/", phrase: "cast", _reason: "SQL" },
    AllowedUse { below: "crates/rowmill-store/", phrase: "cast", _reason: "SQL" },
    AllowedUse { below: "crates/rowmill-types/src/problem_code.rs", phrase: "cast", _reason: "SQL" },
    AllowedUse { below: "docs/", phrase: "cast", _reason: "SQL" },
    AllowedUse { below: "docs/", phrase: "casts", _reason: "SQL" },
    AllowedUse { below: "", phrase: "job stage", _reason: "how far a job at a provider is" },
    AllowedUse { below: "crates/rowmill-core/src/jobs/", phrase: "stage", _reason: "that of a job" },
    AllowedUse { below: "crates/rowmill/src/lane/", phrase: "stage", _reason: "that of a job" },
    AllowedUse { below: "crates/rowmill/src/batch_runs/", phrase: "stage", _reason: "that of a job" },
    AllowedUse { below: "docs/adr/0027-batch-lane.md", phrase: "stage", _reason: "that of a job" },
    AllowedUse {
        below: "crates/rowmill-core/src/ledger.rs",
        phrase: "happening",
        _reason: "a field of ledgers",
    },
    AllowedUse { below: "docs/", phrase: "my parcel", _reason: "what a shop sends" },
    AllowedUse { below: "docs/ledger.md", phrase: "happening", _reason: "a field of ledgers" },
];

/// Pages outside of `docs` whose lines are checked. The changelog names old words, to say what became of them.
const PAGES: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

/// Every avoided word in the names and messages of all sources, tests included, and in the pages, with its place.
///
/// # Errors
///
/// A source or a page cannot be read.
pub(crate) fn find_avoided_words(root: &Path) -> Result<Vec<String>, TaskFailure> {
    let mut found = Vec::new();
    for path in files_below(root, &["crates", "xtask"], ".rs")? {
        let (name, code) = read(root, &path)?;
        found.extend(avoided_in_code(&name, &code)?);
    }
    let pages = PAGES.iter().map(|page| root.join(page));
    for path in files_below(root, &["docs"], ".md")?.into_iter().chain(pages) {
        let (name, page) = read(root, &path)?;
        found.extend(avoided_in_page(&name, &page));
    }
    Ok(found)
}

/// The avoided words of a Rust source: in its path, its names and, outside of tests, its texts.
///
/// # Errors
///
/// It is not Rust.
pub fn avoided_in_code(name: &str, code: &str) -> Result<Vec<String>, TaskFailure> {
    // This list itself.
    if name.ends_with("plain_words.rs") {
        return Ok(Vec::new());
    }
    let tokens: TokenStream = code.parse().map_err(TaskFailure::context("a source is not Rust"))?;
    let mut names = BTreeSet::new();
    collect_names(tokens, &mut names);
    let mut found: Vec<String> =
        avoided_in(name, name).map(|advice| format!("`{name}`: {advice}")).into_iter().collect();
    for used in names {
        let as_it_is = AVOIDED_NAMES.iter().find(|(avoided, _)| *avoided == used);
        let advice =
            as_it_is.map(|(avoided, instead)| advice(avoided, instead)).or_else(|| avoided_in(name, &used));
        found.extend(advice.map(|advice| format!("`{used}` in `{name}`: {advice}")));
    }
    if !name.contains("/tests/") && !name.ends_with("tests.rs") {
        for text in texts(without_unit_tests(code))? {
            found.extend(avoided_in(name, &text).map(|advice| format!("{text:?} in `{name}`: {advice}")));
        }
    }
    Ok(found)
}

/// The avoided words of a page, with their lines.
#[must_use]
pub fn avoided_in_page(name: &str, page: &str) -> Vec<String> {
    let lines = (1..).zip(page.lines());
    lines
        .filter_map(|(number, line)| Some(format!("`{name}`, line {number}: {}", avoided_in(name, line)?)))
        .collect()
}

/// What to write instead of the first avoided word in a name or a text of this file.
fn avoided_in(file: &str, text: &str) -> Option<String> {
    let mut words = format!(" {} ", words_of(text).join(" "));
    for allowed in ALLOWED.iter().filter(|allowed| file.starts_with(allowed.below)) {
        words = words.replace(&format!(" {} ", allowed.phrase), " · ");
    }
    AVOIDED.iter().find_map(|word| {
        let form = word.forms.iter().find(|form| words.contains(&format!(" {form} ")))?;
        Some(advice(form, word.instead))
    })
}

fn advice(word: &str, instead: &str) -> String {
    format!("write “{instead}” in place of “{word}”")
}

/// The words of a name or a text, in small letters: `CallInFlight` and `call_in_flight` have three.
fn words_of(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = ' ';
    for letter in text.chars() {
        let is_start = letter.is_uppercase() && !last.is_uppercase();
        if is_start || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        last = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

fn collect_names(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_names(group.stream(), names),
            TokenTree::Ident(name) => drop(names.insert(name.to_string())),
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// The files below some folders whose names end so, ordered by name.
fn files_below(root: &Path, folders: &[&str], ending: &str) -> Result<Vec<PathBuf>, TaskFailure> {
    let mut paths = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = open.pop() {
        let cannot = || TaskFailure::context(format!("cannot read `{}`", folder.display()));
        for entry in fs::read_dir(&folder).map_err(cannot())? {
            let path = entry.map_err(cannot())?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}

fn read(root: &Path, path: &Path) -> Result<(String, String), TaskFailure> {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let text =
        fs::read_to_string(path).map_err(TaskFailure::context(format_args!("cannot read `{name}`")))?;
    Ok((name, text))
}
