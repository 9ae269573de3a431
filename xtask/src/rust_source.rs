//! Rust sources as tokens: what texts they have, for the checks of `cargo xtask layers`.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

use crate::TaskFailure;
use crate::workspace::WorkspaceCrate;

/// A file of Rust code.
pub(crate) struct RustFile {
    /// Its path from the root of the workspace.
    pub(crate) name: String,
    /// What stands in it.
    pub(crate) code: String,
}

/// The sources of some crates, tests aside, ordered by name.
pub(crate) fn rust_files(root: &Path, crates: &[&WorkspaceCrate]) -> Result<Vec<RustFile>, TaskFailure> {
    let mut paths = Vec::new();
    for own in crates {
        let folder = own.manifest_path.parent().unwrap_or(root);
        collect_paths(&folder.join("src"), &mut paths)?;
    }
    paths.sort();
    paths.into_iter().map(|path| read_file(root, &path)).collect()
}

fn read_file(root: &Path, path: &Path) -> Result<RustFile, TaskFailure> {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let code =
        fs::read_to_string(path).map_err(TaskFailure::context(format_args!("cannot read `{name}`")))?;
    Ok(RustFile { name, code })
}

fn collect_paths(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), TaskFailure> {
    let cannot = || TaskFailure::context(format!("cannot read `{}`", folder.display()));
    for entry in fs::read_dir(folder).map_err(cannot())? {
        let path = entry.map_err(cannot())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_test = name == "tests" || name == "tests.rs" || name.ends_with("_tests.rs");
        if is_test {
            continue;
        }
        if path.is_dir() {
            collect_paths(&path, paths)?;
        } else if name.ends_with(".rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// The code before the tests at the end of a file.
pub(crate) fn without_unit_tests(code: &str) -> &str {
    code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// The string literals of some code, as they are written between the quotes. A doc comment is none.
///
/// # Errors
///
/// It is not Rust.
pub(crate) fn texts(code: &str) -> Result<Vec<String>, TaskFailure> {
    let tokens: TokenStream = code.parse().map_err(TaskFailure::context("a source is not Rust"))?;
    let mut texts = Vec::new();
    collect_texts(tokens, &mut texts);
    Ok(texts)
}

fn collect_texts(tokens: TokenStream, texts: &mut Vec<String>) {
    // A doc comment is the attribute `#[doc = "…"]` by now.
    let mut last_name = String::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_texts(group.stream(), texts),
            TokenTree::Ident(name) => last_name = name.to_string(),
            TokenTree::Literal(literal) if last_name != "doc" => {
                let written = literal.to_string();
                if let Some((_, text)) = written.split_once('"') {
                    texts.push(text.trim_end_matches('#').trim_end_matches('"').to_owned());
                }
            }
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}
