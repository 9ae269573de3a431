//! The cost of single rejections that do not indicate a limit.

use super::sizes::{self, SizeSpread};
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::{CommandEnd, command_text, run_to_end};
use crate::bench::report::{ReportSection, TargetVerdict, whole_number_text};
use crate::bench::server::SimulatorProcess;

/// Two calls in a hundred are rejected with a wait of one second.
const STRAY: [&str; 2] = ["--fault", "429=2%,retry-after=1"];
const LATENCY: [&str; 2] = ["--latency", "40ms"];

pub(super) fn strays(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    // Fewer rows would mainly measure the second that the last rejected row waits.
    let count = 5_000;
    sizes::write(&context.folder.join("strays.jsonl"), count, SizeSpread::Uniform, 20.0)?;
    let with: Vec<&str> = LATENCY.into_iter().chain(STRAY).collect();
    let (without_strays, _) = measured(context, &LATENCY)?;
    let (with_strays, command) = measured(context, &with)?;
    let seconds = |ended: &CommandEnd| ended.wall.as_secs_f64();
    let ratio = seconds(&with_strays) / seconds(&without_strays);
    Ok(ReportSection {
        title: "Single refusals",
        about: "A gateway in front of several backends refuses two calls in a hundred and asks for a second each \
                time, while all others are answered. Nothing in the headers says that a limit is reached.",
        commands: vec![format!("rowmill simulate {}", with.join(" ")), command],
        table: None,
        numbers: vec![format!(
            "{} rows: {:.1} s without refusals, {:.1} s with them",
            whole_number_text(count as f64),
            seconds(&without_strays),
            seconds(&with_strays)
        )],
        verdicts: vec![TargetVerdict {
            target: "at most twice the time without refusals",
            measured: format!("{ratio:.2} times"),
            reached: ratio <= 2.0,
        }],
    })
}

/// A run against a simulator with these flags, and its command line.
fn measured(context: &BenchContext, flags: &[&str]) -> Result<(CommandEnd, String), TaskFailure> {
    let mut server = SimulatorProcess::start(&context.rowmill, flags)?;
    let mut run = context.run("strays.jsonl", "strays-results.jsonl", "openai.gpt-5.4-mini");
    run.args(["--overwrite", "-p", "{{text}}", "--parallel", "64"]);
    run.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "x");
    let ended = run_to_end(&mut run)?;
    let command = command_text(&run);
    if ended.code != Some(0) {
        let failure = format!("`{command}` ended with {:?}:\n{}", ended.code, ended.talk);
        return Err(server.explain(&TaskFailure::new(failure)));
    }
    Ok((ended, command))
}
