//! `cargo xtask timings`: how long the two commands of the README take for somebody who has just
//! cloned the repository.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use super::document::{self, Part};
use super::machine;
use super::report::{ReportSection, ReportTable, TargetVerdict, print, suite_text};
use super::steps::{Step, steps};
use crate::workspace::Workspace;
use crate::{TaskFailure, printer};

const HEAD: &str = "## Timings\n\n\
    `cargo xtask timings` runs the two commands of the README, each in a clean clone with an empty target\n\
    folder. The sources of dependencies were downloaded before.";

/// Measure the two commands of the README, each in a clean clone with an empty target folder.
#[derive(Debug, Args)]
pub(crate) struct TimingsFlags {
    /// Measure only this one; leaves `docs/benchmarks.md` alone.
    #[arg(long, value_enum, value_name = "SCRIPT")]
    only: Option<ReadmeScript>,
}

/// A command of the README.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReadmeScript {
    /// Builds the command and tries it.
    Try,
    /// Everything that must hold before a merge.
    Test,
}

impl ReadmeScript {
    const ALL: [Self; 2] = [Self::Try, Self::Test];

    fn path(self) -> &'static str {
        match self {
            Self::Try => "scripts/try",
            Self::Test => "scripts/test",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Try => "Builds rowmill and runs it over twenty rows.",
            Self::Test => {
                "Everything that must hold before a merge; `.ci/run` runs the same. Steps are those that it prints."
            }
        }
    }

    /// How long it may take on two cores, and what that is called.
    fn target(self) -> (Duration, &'static str) {
        const MINUTE: u32 = 60;
        match self {
            Self::Try => {
                (Duration::from_secs(1) * MINUTE * 6, "`scripts/try` in at most 6 minutes on two cores")
            }
            Self::Test => {
                (Duration::from_secs(1) * MINUTE * 20, "`scripts/test` in at most 20 minutes on two cores")
            }
        }
    }
}

/// Measures, and writes a part of `docs/benchmarks.md`.
pub(crate) fn timings(workspace: &Workspace, flags: &TimingsFlags) -> Result<(), TaskFailure> {
    let facts = machine::facts(workspace, None, "`try` for `scripts/try`, `dev` for `scripts/test`");
    let mut sections = Vec::new();
    for script in ReadmeScript::ALL {
        if flags.only.is_none_or(|only| only == script) {
            let section = measure(workspace, script)?;
            print(&section);
            sections.push(section);
        }
    }
    if flags.only.is_none() {
        document::write(workspace, Part::Timings, &suite_text(HEAD, &facts, &sections))?;
    }
    Ok(())
}

fn measure(workspace: &Workspace, script: ReadmeScript) -> Result<ReportSection, TaskFailure> {
    let folder = tempfile::tempdir().map_err(TaskFailure::context("cannot make a temporary folder"))?;
    let clone = folder.path().join("rowmill");
    clone_to(workspace, &clone)?;
    printer::say(format_args!("\n{} in {}", script.path(), clone.display()));
    let mut command = workspace.command("bash");
    command.arg(script.path()).current_dir(&clone);
    // The target folder of the clone, which does not exist yet.
    command.env_remove("CARGO_TARGET_DIR");
    let (taken, printed) = run(&mut command)?;
    Ok(section(script, taken, steps(&printed)))
}

/// What is committed is what others get.
fn clone_to(workspace: &Workspace, folder: &Path) -> Result<(), TaskFailure> {
    let mut status = workspace.command("git");
    let changes =
        status.args(["status", "--porcelain"]).output().map_err(TaskFailure::context("cannot start git"))?;
    if !changes.stdout.is_empty() {
        printer::note("changes that are not committed are not measured");
    }
    let mut clone = workspace.command("git");
    clone.args(["clone", "--quiet"]).arg(workspace.root()).arg(folder);
    let status = clone.status().map_err(TaskFailure::context("cannot start git"))?;
    if status.success() { Ok(()) } else { Err(TaskFailure::new("`git clone` failed; see above")) }
}

/// Runs a command, shows what it prints as it comes, and returns it.
fn run(command: &mut Command) -> Result<(Duration, String), TaskFailure> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(TaskFailure::context("cannot start bash"))?;
    let mut printed = String::new();
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        let line = line?;
        printer::say(&line);
        printed.push_str(&line);
        printed.push('\n');
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(TaskFailure::new(format!("the script failed ({status}); see above")));
    }
    Ok((start.elapsed(), printed))
}

fn section(script: ReadmeScript, taken: Duration, steps: Vec<Step>) -> ReportSection {
    let (most, target) = script.target();
    let mut rows: Vec<_> = steps.into_iter().map(|step| vec![step.name, step.seconds.to_string()]).collect();
    rows.push(vec!["all".to_owned(), format!("{:.0}", taken.as_secs_f64())]);
    ReportSection {
        title: script.path(),
        about: script.about(),
        commands: vec![format!("bash {}", script.path())],
        table: Some(ReportTable { head: vec!["step".to_owned(), "seconds".to_owned()], rows }),
        numbers: Vec::new(),
        verdicts: vec![TargetVerdict { target, measured: minutes(taken), reached: taken <= most }],
    }
}

fn minutes(taken: Duration) -> String {
    let seconds = taken.as_secs_f64().round();
    format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_has_a_table_of_steps_with_their_sum_and_says_which_target_is_missed() {
        let steps =
            vec![Step { name: "format".into(), seconds: 3 }, Step { name: "tests".into(), seconds: 900 }];
        let sections = [
            section(ReadmeScript::Try, Duration::from_secs(359), Vec::new()),
            section(ReadmeScript::Test, Duration::from_millis(1_200_600), steps),
        ];
        let text = suite_text(HEAD, &[], &sections);
        for expected in [
            "| `scripts/try` in at most 6 minutes on two cores | 5 min 59 s | PASS |\n",
            "| `scripts/test` in at most 20 minutes on two cores | 20 min 1 s | FAIL |\n",
            "```sh\nbash scripts/try\n```\n\n| step | seconds |\n|---|---|\n| all | 359 |\n",
            "| step | seconds |\n|---|---|\n| format | 3 |\n| tests | 900 |\n| all | 1201 |\n",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }

    #[test]
    fn what_a_script_prints_is_returned_and_a_failure_is_one() {
        let (_, printed) = run(Command::new("bash").args(["-c", "echo a; echo b"])).unwrap();
        assert_eq!(printed, "a\nb\n");
        let failure = run(Command::new("bash").args(["-c", "echo a; exit 3"])).unwrap_err().to_string();
        assert!(failure.contains("exit status: 3"), "{failure}");
    }
}
