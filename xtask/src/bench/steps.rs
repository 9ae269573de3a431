//! The table of steps that `scripts/test` ends with; `scripts/steps` prints it.

/// The line before the table.
const TITLE: &str = "=== seconds by step";
/// The last line of the table: all steps together.
const SUM: &str = "all";

/// A step of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) seconds: u64,
}

/// The steps in what a script printed; none, where it printed no table.
pub(super) fn steps(printed: &str) -> Vec<Step> {
    let table = printed.lines().rev().take_while(|line| *line != TITLE).count();
    let lines = printed.lines().count();
    if table == lines {
        return Vec::new();
    }
    printed.lines().skip(lines - table).map_while(step).take_while(|step| step.name != SUM).collect()
}

fn step(line: &str) -> Option<Step> {
    let (seconds, name) = line.trim_start().split_once("  ")?;
    Some(Step { name: name.to_owned(), seconds: seconds.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn named(names: &[(&str, u64)]) -> Vec<Step> {
        names.iter().map(|(name, seconds)| Step { name: (*name).to_owned(), seconds: *seconds }).collect()
    }

    #[test]
    fn the_table_at_the_end_is_read_and_what_looks_like_one_before_it_is_not() {
        let printed = "=== format\n      17  not a step\n\n=== seconds by step\n       3  an earlier table\n\
                       \n=== seconds by step\n       3  format\n    1042  build of the tests\n    1045  all\n\
                       more\n";
        assert_eq!(steps(printed), named(&[("format", 3), ("build of the tests", 1042)]));
        assert_eq!(steps("=== format\n       3  format\n"), []);
        assert_eq!(steps(""), []);
    }

    #[test]
    fn what_the_script_prints_can_be_read_though_a_step_fails() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
        let script = "set -euo pipefail; . ./steps; step 'a  b'; true; step last one; false; step never";
        let output = Command::new("bash").args(["-c", script]).current_dir(folder).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let names: Vec<_> =
            steps(&String::from_utf8(output.stdout).unwrap()).into_iter().map(|step| step.name).collect();
        assert_eq!(names, ["a  b", "last one"]);
    }
}
