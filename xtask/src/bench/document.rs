//! `docs/benchmarks.md`: a part for each suite; a run replaces the part of its suite.

use super::suite::SuiteName;

const HEAD: &str = "<!-- Written by `cargo xtask bench`; do not edit. -->\n\
     # Benchmarks\n\n\
     Made with `cargo xtask bench SUITE`, which builds rowmill and runs its simulator, a made-up model\n\
     provider, as a process of its own on the same machine. Each suite writes its own part of this page.\n";
const END: &str = "<!-- end of suite -->";

/// The document with a new part for `suite`; the other parts stay unchanged.
pub(super) fn with_part(before: &str, suite: SuiteName, part: &str) -> String {
    let mut out = String::from(HEAD);
    for each in SuiteName::ALL {
        let text = if each == suite { Some(part) } else { part_of(before, each) };
        if let Some(text) = text {
            out.push_str(&format!("\n{}\n{}\n{END}\n", marker(each), text.trim_matches('\n')));
        }
    }
    out
}

fn part_of(document: &str, suite: SuiteName) -> Option<&str> {
    let (_, rest) = document.split_once(&marker(suite))?;
    rest.split_once(END).map(|(part, _)| part)
}

fn marker(suite: SuiteName) -> String {
    format!("<!-- suite: {} -->", suite.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_replaces_its_own_part_and_leaves_the_other() {
        let speed = with_part("", SuiteName::Speed, "## Speed\n\nfast\n");
        assert!(!speed.contains("suite: limits"));
        let both = with_part(&speed, SuiteName::Limits, "## Limits\n\nall used\n");
        let again = with_part(&both, SuiteName::Speed, "## Speed\n\nfaster\n");
        assert!(again.contains("faster") && !again.contains("fast\n"), "{again}");
        assert!(again.contains("all used"));
        assert!(again.find("## Speed") < again.find("## Limits"));
        assert_eq!(with_part(&again, SuiteName::Limits, "## Limits\n\nall used\n"), again);
    }
}
