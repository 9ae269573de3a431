//! `docs/benchmarks.md`: a part for each suite and one for timings, of which a run replaces its own.

use std::fs;

use super::suite::SuiteName;
use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

const HEAD: &str = "<!-- Written by `cargo xtask bench` and `cargo xtask timings`; do not edit. -->\n\
     # Benchmarks\n\n\
     Made with `cargo xtask bench SUITE`, which builds rowmill and runs its simulator, a made-up model\n\
     provider, as a process of its own on the same machine. Each suite writes its own part of this page;\n\
     the last part, what a build and all tests take, is made with `cargo xtask timings`.\n";
const END: &str = "<!-- end of suite -->";

/// A part of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// What a suite of `cargo xtask bench` measured.
    Suite(SuiteName),
    /// What `cargo xtask timings` measured.
    Timings,
}

impl Part {
    /// All parts, in the order of the document.
    fn all() -> impl Iterator<Item = Self> {
        SuiteName::ALL.map(Self::Suite).into_iter().chain([Self::Timings])
    }

    /// The line before the part.
    fn marker(self) -> String {
        let word = match self {
            Self::Suite(suite) => suite.word(),
            Self::Timings => "timings",
        };
        format!("<!-- suite: {word} -->")
    }
}

/// Replaces a part of the document in the repository.
pub(super) fn write(workspace: &Workspace, part: Part, text: &str) -> Result<(), TaskFailure> {
    let path = workspace.root().join("docs/benchmarks.md");
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, replace_suite_part(&before, part, text))
        .map_err(TaskFailure::context("cannot write the report"))?;
    printer::say(format_args!("\nwrote {}", path.display()));
    Ok(())
}

/// The document with a new text for `part`; the other parts stay as they were.
pub(super) fn replace_suite_part(before: &str, part: Part, text: &str) -> String {
    let mut out = String::from(HEAD);
    for each in Part::all() {
        let text = if each == part { Some(text) } else { text_of(before, each) };
        if let Some(text) = text {
            out.push_str(&format!("\n{}\n{}\n{END}\n", each.marker(), text.trim_matches('\n')));
        }
    }
    out
}

fn text_of(document: &str, part: Part) -> Option<&str> {
    let (_, rest) = document.split_once(&part.marker())?;
    rest.split_once(END).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_replaces_itself_and_leaves_the_others() {
        let [speed, limits] = [SuiteName::Speed, SuiteName::Limits].map(Part::Suite);
        let first = replace_suite_part("", speed, "## Speed\n\nfast\n");
        assert!(!first.contains("suite: limits"));
        let both = replace_suite_part(&first, limits, "## Limits\n\nall used\n");
        let three = replace_suite_part(&both, Part::Timings, "## Timings\n\nquick\n");
        let again = replace_suite_part(&three, speed, "## Speed\n\nfaster\n");
        assert!(again.contains("faster") && !again.contains("fast\n"), "{again}");
        assert!(again.contains("all used"));
        assert!(again.contains("<!-- suite: timings -->\n## Timings\n\nquick\n<!-- end of suite -->"));
        assert!(again.find("## Speed") < again.find("## Limits"));
        assert!(again.find("## Limits") < again.find("## Timings"));
        assert_eq!(replace_suite_part(&again, limits, "## Limits\n\nall used\n"), again);
    }
}
