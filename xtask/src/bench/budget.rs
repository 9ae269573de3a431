//! The slowdown that a budget causes.

use std::fs;
use std::process::Command;

use super::context::{BenchContext, ScenarioFn};
use super::measure::{command_text, median, run_to_end};
use super::report::{ReportSection, ReportTable, TargetVerdict, values_text};
use super::server::SimulatorProcess;
use crate::TaskFailure;

/// All scenarios, in the order of the report.
pub(super) const ALL: &[(&str, ScenarioFn)] = &[("pace", pace)];

/// Rows of each run; a quick benchmark has fewer rounds, not fewer rows, because otherwise the start would
/// dominate.
const ROWS: u64 = 600;
/// The maximum slowdown of a run with a budget.
const MOST: f64 = 1.2;
/// The budget, in dollars.
const BUDGET: f64 = 1.0;
/// The flags of the simulator.
const SIMULATOR: [&str; 4] = ["--latency", "300ms", "--price", "input=0.75,cached=0.075,output=4.5"];

fn pace(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let rows: String =
        (1..=ROWS).map(|row| format!("{{\"text\":\"The mill ground {row} sacks of corn.\"}}\n")).collect();
    fs::write(context.folder.join("budget.jsonl"), rows)?;
    let rounds = if context.divisor() == 1 { 5 } else { 1 };
    let (mut plain, mut limited, mut most_cost) = (Vec::new(), Vec::new(), 0.0_f64);
    let mut commands = vec![format!("rowmill simulate {}", SIMULATOR.join(" "))];
    for round in 0..rounds {
        let without = measured(context, &[])?;
        let with = measured(context, &["--max-cost", "1"])?;
        most_cost = most_cost.max(with.cost);
        plain.push(without.seconds);
        limited.push(with.seconds);
        if round == 0 {
            commands.extend([without.command, with.command]);
        }
    }
    let ratio = median(&limited) / median(&plain);
    let line = |name: &str, times: &[f64]| vec![name.to_owned(), values_text(times)];
    Ok(ReportSection {
        title: "Pace",
        about: "600 rows at 300 ms, without `max_tokens`: with a budget, answers are limited so that as many calls \
                fit beside each other as without. The model can answer with 128,000 tokens, which would cost $0.58.",
        commands,
        table: Some(ReportTable {
            head: vec!["run".to_owned(), "seconds".to_owned()],
            rows: vec![line("without a budget", &plain), line("with `--max-cost 1`", &limited)],
        }),
        numbers: vec![format!("the simulator billed ${most_cost:.4} at most")],
        verdicts: vec![
            TargetVerdict {
                target: "a budget makes a run at most 1.2 times as long",
                measured: format!("{ratio:.2} times"),
                reached: ratio <= MOST,
            },
            TargetVerdict {
                target: "the budget is never passed",
                measured: format!("${most_cost:.4} of ${BUDGET}"),
                reached: most_cost <= BUDGET,
            },
        ],
    })
}

/// One run, and the amount that the simulator charged for it.
struct MeasuredRun {
    seconds: f64,
    cost: f64,
    command: String,
}

fn measured(context: &BenchContext, budget: &[&str]) -> Result<MeasuredRun, TaskFailure> {
    let mut server = SimulatorProcess::start(&context.rowmill, &SIMULATOR)?;
    let mut run: Command = context.run("budget.jsonl", "budget-results.jsonl", "openai.gpt-5.4-mini");
    run.args(["--overwrite", "-p", "{{text}}"]).args(budget);
    run.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "x");
    let ended = run_to_end(&mut run)?;
    let command = command_text(&run);
    if ended.code != Some(0) {
        let failure = format!("`{command}` ended with {:?}:\n{}", ended.code, ended.talk);
        return Err(server.explain(&TaskFailure::new(failure)));
    }
    let stats: serde_json::Value = serde_json::from_str(&server.stats()?)
        .map_err(TaskFailure::context("cannot read the simulator's statistics"))?;
    let cost = stats["cost_usd"].as_f64().unwrap_or(f64::NAN);
    Ok(MeasuredRun { seconds: ended.wall.as_secs_f64(), cost, command })
}
