//! How much of the limits is used, and how often calls are rejected.

use std::thread;

use super::scenario::{ALL, LimitForm, LimitScenario, LimitSchedule, SendManner};
use super::sizes;
use super::usage::SimulatorCounts;
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::{command_text, run_to_end};
use crate::bench::report::{ReportSection, ReportTable, TargetVerdict, whole_number_text};
use crate::bench::server::SimulatorProcess;

/// More than the limits allow during a run.
const ROWS: u64 = 9_000;
/// The exit code of `rowmill run` if it stopped at a limit that was set: here the deadline.
const STOPPED: i32 = 4;
const LEAST_USED: f64 = 97.0;
const MOST_REFUSED: f64 = 0.5;

/// The result of a run, and how it was started.
struct QuotaOutcome {
    scenario: LimitScenario,
    manner: SendManner,
    stats: SimulatorCounts,
    commands: [String; 2],
}

/// Runs all scenarios at the same time, because waiting costs nothing.
pub(super) fn quota(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let schedule = LimitSchedule::of(context.length);
    let mut outcomes = Vec::new();
    thread::scope(|scope| {
        let mut runs = Vec::new();
        for (number, scenario) in ALL.into_iter().enumerate() {
            for manner in [SendManner::Auto, SendManner::Fixed] {
                runs.push(scope.spawn(move || perform(context, number, scenario, manner)));
            }
        }
        for run in runs {
            outcomes.push(run.join().map_err(|_| TaskFailure::new("a run of the benchmark panicked"))??);
        }
        Ok::<(), TaskFailure>(())
    })?;
    let phases = schedule.phases();
    let mut verdicts = Vec::new();
    for form in [LimitForm::OpenAi, LimitForm::Anthropic] {
        verdicts.extend(judged(form, &outcomes, schedule));
    }
    let mut head: Vec<String> = ["rows", "run"].map(ToOwned::to_owned).into();
    head.extend(phases.iter().map(|phase| format!("minutes {} to {}", phase.start, phase.end)));
    head.extend(["together", "answered 429", "rows ok"].map(ToOwned::to_owned));
    let commands = [LimitForm::OpenAi, LimitForm::Anthropic].map(|form| {
        let of_form = outcomes.iter().filter(move |outcome| outcome.scenario.form == form);
        of_form.take(2).flat_map(|outcome| outcome.commands.clone()).collect::<Vec<_>>()
    });
    Ok(ReportSection {
        title: "Use of limits",
        about: "600 requests and 60,000 tokens a minute (OpenAI's form), or 600 requests, 40,000 input and 20,000 \
                output tokens (Anthropic's), with more rows than fit. All limits are halved after minute 3 and doubled, \
                to twice what they were at first, after minute 5; rows are sent for 8 minutes. Small rows meet the limit \
                on requests first, large ones one on tokens. Shown is the share of the limit that was met first, \
                without the first minute, in which buckets are full, and the last; a phase above 100 % counts as \
                100 %. Beside it the same rows by rowmill without pacing and with at most 64 in flight; it still waits as \
                long as a refusal asks for. No other tool was measured. One run each, all at the same time, each \
                with a simulator of its own.",
        commands: commands.concat(),
        table: Some(ReportTable {
            head,
            rows: outcomes.iter().map(|outcome| line(outcome, schedule)).collect::<Result<_, _>>()?,
        }),
        numbers: vec![],
        verdicts,
    })
}

fn perform(
    context: &BenchContext,
    number: usize,
    scenario: LimitScenario,
    manner: SendManner,
) -> Result<QuotaOutcome, TaskFailure> {
    let schedule = LimitSchedule::of(context.length);
    let name = format!("limits-{number}-{manner:?}").to_lowercase();
    let (input, output) = (format!("{name}.jsonl"), format!("{name}-results.jsonl"));
    sizes::write(&context.folder.join(&input), ROWS, scenario.spread, scenario.prompt)?;
    let script = scenario.script(schedule);
    let mut server = SimulatorProcess::start(&context.rowmill, &script)?;
    let mut run = scenario.run(context, (&input, &output), manner, &server);
    let ended = run_to_end(&mut run)?;
    if ended.code != Some(STOPPED) {
        let failure = format!("`{}` ended with {:?}:\n{}", command_text(&run), ended.code, ended.talk);
        return Err(server.explain(&TaskFailure::new(failure)));
    }
    let text = server.stats()?;
    std::fs::write(context.folder.join(format!("{name}-stats.json")), &text)?;
    let stats = serde_json::from_str(&text)
        .map_err(TaskFailure::context("cannot read the simulator's statistics"))?;
    let commands = [format!("rowmill simulate {}", script.join(" ")), command_text(&run)];
    Ok(QuotaOutcome { scenario, manner, stats, commands })
}

fn line(outcome: &QuotaOutcome, schedule: LimitSchedule) -> Result<Vec<String>, TaskFailure> {
    let QuotaOutcome { scenario, manner, stats, .. } = outcome;
    let phases = schedule.phases();
    let rows = format!(
        "{}, {}: {} in, `{}` out",
        scenario.form.name(),
        scenario.spread.word(),
        scenario.prompt,
        scenario.answer
    );
    let mut cells = vec![rows, manner.shown().to_owned()];
    for phase in &phases {
        let share = stats.share(phase.clone()).ok_or_else(too_short)?;
        cells.push(format!("{:.1} % of {}", share.used, share.limit));
    }
    cells.push(format!("{:.1} %", stats.used(&phases).ok_or_else(too_short)?));
    let refused = whole_number_text(stats.rate_limited as f64);
    cells.push(format!(
        "{:.2} % ({refused} of {})",
        stats.refused(),
        whole_number_text(stats.requests as f64)
    ));
    cells.push(whole_number_text(stats.answers as f64));
    Ok(cells)
}

fn too_short() -> TaskFailure {
    TaskFailure::new("the simulator did not run for as long as the run was to take")
}

/// The worst of the runs without settings, for each target.
fn judged(form: LimitForm, outcomes: &[QuotaOutcome], schedule: LimitSchedule) -> [TargetVerdict; 2] {
    let ours = || {
        outcomes.iter().filter(|outcome| outcome.scenario.form == form && outcome.manner == SendManner::Auto)
    };
    let used = ours()
        .map(|outcome| outcome.stats.used(&schedule.phases()).unwrap_or_default())
        .fold(f64::INFINITY, f64::min);
    let refused = ours().map(|outcome| outcome.stats.refused()).fold(0.0, f64::max);
    let (use_target, refusal_target) = match form {
        LimitForm::OpenAi => (
            "OpenAI's form: at least 97 % of the quota used between the first and the last minute",
            "OpenAI's form: at most 0.5 % of requests answered 429",
        ),
        LimitForm::Anthropic => (
            "Anthropic's form: at least 97 % of the quota used between the first and the last minute",
            "Anthropic's form: at most 0.5 % of requests answered 429",
        ),
    };
    [
        TargetVerdict {
            target: use_target,
            measured: format!("{used:.1} % at least"),
            reached: used >= LEAST_USED,
        },
        TargetVerdict {
            target: refusal_target,
            measured: format!("{refused:.2} % at most"),
            reached: refused <= MOST_REFUSED,
        },
    ]
}
