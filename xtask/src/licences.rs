//! `cargo xtask licences`: a licence check that works without cargo-deny and without a network.

use std::fs;

use serde::Deserialize;

use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

#[derive(Deserialize)]
struct LicenceRules {
    licenses: LicenceList,
}

#[derive(Deserialize)]
struct LicenceList {
    allow: Vec<String>,
}

/// Checks the licence of every crate in the build against the list in `deny.toml`.
///
/// # Errors
///
/// A crate has no licence, or one that is not on the list.
pub fn check_licences(workspace: &Workspace) -> Result<(), TaskFailure> {
    let text = fs::read_to_string(workspace.root().join("deny.toml"))
        .map_err(TaskFailure::context("cannot read `deny.toml`"))?;
    let rules: LicenceRules =
        toml::from_str(&text).map_err(TaskFailure::context("cannot read `deny.toml`"))?;
    let crates = workspace.all_crates()?;
    let refused: Vec<_> = crates
        .iter()
        .filter(|used| {
            !used.license.as_deref().is_some_and(|licence| is_allowed(licence, &rules.licenses.allow))
        })
        .map(|used| {
            let licence = used.license.as_deref().unwrap_or("no licence");
            format!("`{} {}` ({licence})", used.name, used.version)
        })
        .collect();
    if !refused.is_empty() {
        return Err(TaskFailure::new(format!(
            "not on the list of licences in `deny.toml`: {}. Use another crate, or add the licence if it \
             asks for no more than the others",
            refused.join(", ")
        )));
    }
    printer::say(format_args!("{} crates, all under allowed licences", crates.len()));
    Ok(())
}

/// Whether an SPDX expression can be satisfied with licences of the list.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = SpdxReader { words: &words, allowed };
    let satisfied = reader.any();
    satisfied && reader.words.is_empty()
}

struct SpdxReader<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl<'a> SpdxReader<'a> {
    fn any(&mut self) -> bool {
        let mut satisfied = self.all();
        while self.accept("OR") {
            satisfied |= self.all();
        }
        satisfied
    }

    fn all(&mut self) -> bool {
        let mut satisfied = self.one();
        while self.accept("AND") {
            satisfied &= self.one();
        }
        satisfied
    }

    fn one(&mut self) -> bool {
        if self.accept("(") {
            let satisfied = self.any();
            return self.accept(")") && satisfied;
        }
        let Some(licence) = self.next() else { return false };
        let name = if self.accept("WITH") {
            format!("{licence} WITH {}", self.next().unwrap_or_default())
        } else {
            licence.to_owned()
        };
        self.allowed.contains(&name)
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.next();
        }
        found
    }

    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_if_a_choice_within_it_is() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(ToOwned::to_owned);
        let cases = [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND ISC", true),
            ("MIT AND GPL-3.0", false),
            ("(GPL-3.0 OR MIT) AND ISC", true),
            ("ISC AND (GPL-3.0 OR (MIT AND LGPL-2.1))", false),
            ("Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT ISC", false),
            ("(MIT", false),
            ("", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }
}
