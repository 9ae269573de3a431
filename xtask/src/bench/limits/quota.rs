//! How much of the limits is used, and how often calls are rejected.

use std::thread;

use super::scenario::{ALL, Course, Form, Manner, Scenario};
use super::sizes;
use super::usage::Stats;
use crate::Failure;
use crate::bench::measure::{end_of, shown};
use crate::bench::report::{Section, Table, Verdict, whole};
use crate::bench::server::Server;
use crate::bench::stage::Stage;

/// More than the limits allow during a run.
const ROWS: u64 = 9_000;
/// The exit code of `rowmill run` if it stopped at a limit that was set: here the deadline.
const STOPPED: i32 = 4;
const LEAST_USED: f64 = 97.0;
const MOST_REFUSED: f64 = 0.5;

/// The result of a run, and how it was started.
struct Outcome {
    scenario: Scenario,
    manner: Manner,
    stats: Stats,
    commands: [String; 2],
}

/// Runs all scenarios at the same time, because waiting costs nothing.
pub(super) fn quota(stage: &Stage) -> Result<Section, Failure> {
    let course = Course::of(stage.length);
    let mut outcomes = Vec::new();
    thread::scope(|scope| {
        let mut runs = Vec::new();
        for (number, scenario) in ALL.into_iter().enumerate() {
            for manner in [Manner::Auto, Manner::Fixed] {
                runs.push(scope.spawn(move || perform(stage, number, scenario, manner)));
            }
        }
        for run in runs {
            outcomes.push(run.join().map_err(|_| Failure::new("a run of the benchmark panicked"))??);
        }
        Ok::<(), Failure>(())
    })?;
    let phases = course.phases();
    let mut verdicts = Vec::new();
    for form in [Form::OpenAi, Form::Anthropic] {
        verdicts.extend(judged(form, &outcomes, course));
    }
    let mut head: Vec<String> = ["rows", "run"].map(ToOwned::to_owned).into();
    head.extend(phases.iter().map(|phase| format!("minutes {} to {}", phase.start, phase.end)));
    head.extend(["together", "answered 429", "rows ok"].map(ToOwned::to_owned));
    let commands = [Form::OpenAi, Form::Anthropic].map(|form| {
        let of_form = outcomes.iter().filter(move |outcome| outcome.scenario.form == form);
        of_form.take(2).flat_map(|outcome| outcome.commands.clone()).collect::<Vec<_>>()
    });
    Ok(Section {
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
        table: Some(Table {
            head,
            rows: outcomes.iter().map(|outcome| line(outcome, course)).collect::<Result<_, _>>()?,
        }),
        numbers: vec![],
        verdicts,
    })
}

fn perform(stage: &Stage, number: usize, scenario: Scenario, manner: Manner) -> Result<Outcome, Failure> {
    let course = Course::of(stage.length);
    let name = format!("limits-{number}-{manner:?}").to_lowercase();
    let (input, output) = (format!("{name}.jsonl"), format!("{name}-results.jsonl"));
    sizes::write(&stage.folder.join(&input), ROWS, scenario.spread, scenario.prompt)?;
    let script = scenario.script(course);
    let mut server = Server::start(&stage.rowmill, &script)?;
    let mut run = scenario.run(stage, (&input, &output), manner, &server);
    let ended = end_of(&mut run)?;
    if ended.code != Some(STOPPED) {
        let failure = format!("`{}` ended with {:?}:\n{}", shown(&run), ended.code, ended.talk);
        return Err(server.explain(&Failure::new(failure)));
    }
    let text = server.stats()?;
    std::fs::write(stage.folder.join(format!("{name}-stats.json")), &text)?;
    let stats = serde_json::from_str(&text).map_err(Failure::of("cannot read the simulator's statistics"))?;
    let commands = [format!("rowmill simulate {}", script.join(" ")), shown(&run)];
    Ok(Outcome { scenario, manner, stats, commands })
}

fn line(outcome: &Outcome, course: Course) -> Result<Vec<String>, Failure> {
    let Outcome { scenario, manner, stats, .. } = outcome;
    let phases = course.phases();
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
    let refused = whole(stats.rate_limited as f64);
    cells.push(format!("{:.2} % ({refused} of {})", stats.refused(), whole(stats.requests as f64)));
    cells.push(whole(stats.answers as f64));
    Ok(cells)
}

fn too_short() -> Failure {
    Failure::new("the simulator did not run for as long as the run was to take")
}

/// The worst of the runs without settings, for each target.
fn judged(form: Form, outcomes: &[Outcome], course: Course) -> [Verdict; 2] {
    let ours =
        || outcomes.iter().filter(|outcome| outcome.scenario.form == form && outcome.manner == Manner::Auto);
    let used = ours()
        .map(|outcome| outcome.stats.used(&course.phases()).unwrap_or_default())
        .fold(f64::INFINITY, f64::min);
    let refused = ours().map(|outcome| outcome.stats.refused()).fold(0.0, f64::max);
    let (use_target, refusal_target) = match form {
        Form::OpenAi => (
            "OpenAI's form: at least 97 % of the quota used between the first and the last minute",
            "OpenAI's form: at most 0.5 % of requests answered 429",
        ),
        Form::Anthropic => (
            "Anthropic's form: at least 97 % of the quota used between the first and the last minute",
            "Anthropic's form: at most 0.5 % of requests answered 429",
        ),
    };
    [
        Verdict {
            target: use_target,
            measured: format!("{used:.1} % at least"),
            reached: used >= LEAST_USED,
        },
        Verdict {
            target: refusal_target,
            measured: format!("{refused:.2} % at most"),
            reached: refused <= MOST_REFUSED,
        },
    ]
}
