//! The scenarios, one function each.

use std::process::Command;
use std::time::Duration;

use super::{capture, durable, rows, wrk};
use crate::TaskFailure;
use crate::bench::context::{BenchContext, ScenarioFn};
use crate::bench::measure::{ProcessCost, command_text, measure_cost, median};
use crate::bench::report::{ReportSection, TargetVerdict, values_text, whole_number_text};
use crate::bench::server::SimulatorProcess;

/// All scenarios, in the order of the report.
pub(in crate::bench) const ALL: &[(&str, ScenarioFn)] = &[
    ("throughput", throughput),
    ("structured results", structured),
    ("memory", memory),
    ("start-up", start_up),
    ("many calls in flight", many_in_flight),
    ("reading and resuming", reading),
    ("durable", durable::durable),
];

const PROMPT: &str = "Is this review positive, negative or neutral? {{review}}";
const MODEL: &str = "generic.simulated";
const ROUNDS: usize = 3;
/// The number of captured requests that `wrk` sends in turn.
const CAPTURED: u64 = 1_000;

pub(super) fn calls(
    context: &BenchContext,
    input: &str,
    server: &SimulatorProcess,
    parallel: u64,
) -> Command {
    let mut command = context.run(input, "results.jsonl", MODEL);
    command.args(["--overwrite", "-p", PROMPT, "--parallel", &parallel.to_string()]);
    command.env("GENERIC_BASE_URL", server.base_url());
    command
}

/// 64 in flight against an instant server, compared with `wrk` and the same bytes.
fn throughput(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let count = context.rows(200_000);
    let mut server = SimulatorProcess::start(&context.rowmill, &["--instant"])?;
    rows::write(&context.folder.join("rows.jsonl"), count)?;
    let sample = |base_url: &str| {
        let mut command = calls(context, "rows.jsonl", &server, 1);
        command.args(["--limit", &CAPTURED.to_string()]).env("GENERIC_BASE_URL", base_url);
        command
    };
    let requests = capture::requests(sample, server.address())?;
    wrk::script(&context.folder.join("requests.lua"), &requests)?;

    let (mut wrk_cpu, mut wrk_rate, mut cpu, mut rate) = (vec![], vec![], vec![], vec![]);
    let mut load = wrk::command("requests.lua", (10 / context.divisor()).max(2), &server.base_url());
    load.current_dir(&context.folder);
    let mut run = calls(context, "rows.jsonl", &server, 64);
    for _ in 0..ROUNDS {
        let yardstick = wrk::run(&mut load).map_err(|failure| server.explain(&failure))?;
        wrk_cpu.push(yardstick.cost.cpu_per(yardstick.requests));
        wrk_rate.push(yardstick.cost.rate(yardstick.requests));
        let (cost, _) = measure_cost(&mut run).map_err(|failure| server.explain(&failure))?;
        cpu.push(cost.cpu_per(count));
        rate.push(cost.rate(count));
    }
    let ratio = median(&cpu) / median(&wrk_cpu);
    Ok(ReportSection {
        title: "Throughput at 64 in flight",
        about: "CPU (user and system) of the client for each row, against a server that answers from prepared \
                bytes. `wrk` sends, byte for byte, requests that rowmill made. Runs alternate; the median counts.",
        commands: vec!["rowmill simulate --instant".into(), command_text(&load), command_text(&run)],
        table: None,
        numbers: vec![
            format!("wrk: {} µs of CPU per request (median {:.1})", values_text(&wrk_cpu), median(&wrk_cpu)),
            format!(
                "rowmill: {} µs of CPU per row (median {:.1}), {} rows",
                values_text(&cpu),
                median(&cpu),
                whole_number_text(count as f64)
            ),
            format!(
                "wrk: {} requests/s, rowmill: {} rows/s (medians)",
                whole_number_text(median(&wrk_rate)),
                whole_number_text(median(&rate))
            ),
        ],
        verdicts: vec![
            TargetVerdict {
                target: "CPU per row at most 2.3 times that of `wrk`",
                measured: format!("{ratio:.2} times"),
                reached: ratio <= 2.3,
            },
            TargetVerdict {
                target: "at least 8,000 rows/s",
                measured: format!("{} rows/s", whole_number_text(median(&rate))),
                reached: median(&rate) >= 8_000.0,
            },
        ],
    })
}

/// The same with a schema that every answer is validated against.
fn structured(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let count = context.rows(200_000);
    let answer = r#"{"sentiment":"positive","confidence":0.93,"reason":"it arrived on time"}"#;
    let schema = r#"{"type":"object","properties":{"sentiment":{"enum":["positive","negative","neutral"]},
        "confidence":{"type":"number","minimum":0,"maximum":1},"reason":{"type":"string","maxLength":200}},
        "required":["sentiment","confidence","reason"],"additionalProperties":false}"#;
    std::fs::write(context.folder.join("schema.json"), schema)?;
    rows::write(&context.folder.join("rows.jsonl"), count)?;
    let server = SimulatorProcess::start(&context.rowmill, &["--instant", "--instant-text", answer])?;
    let mut run = calls(context, "rows.jsonl", &server, 64);
    run.args(["--json-schema", "schema.json"]);
    let (cost, _) = measure_cost(&mut run)?;
    Ok(ReportSection {
        title: "Structured results",
        about: "As above, with a JSON Schema of three fields sent along and every answer checked against it. For information.",
        commands: vec![command_text(&run)],
        table: None,
        numbers: vec![format!(
            "{:.1} µs of CPU per row, {} rows/s",
            cost.cpu_per(count),
            whole_number_text(cost.rate(count))
        )],
        verdicts: vec![],
    })
}

/// Peak memory for few and for many rows.
fn memory(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let server = SimulatorProcess::start(&context.rowmill, &["--instant"])?;
    let (few, many) = (10_000, context.rows(1_000_000));
    let measure = |count: u64| {
        rows::write(&context.folder.join("rows.jsonl"), count)?;
        let mut run = calls(context, "rows.jsonl", &server, 64);
        let (cost, _) = measure_cost(&mut run)?;
        Ok::<(ProcessCost, String), TaskFailure>((cost, command_text(&run)))
    };
    let ((small, _), (large, command)) = (measure(few)?, measure(many)?);
    let (low, high) = (small.peak_megabytes(), large.peak_megabytes());
    let apart = (high / low - 1.0).abs() * 100.0;
    Ok(ReportSection {
        title: "Memory",
        about: "The most memory that rowmill had at once (the kernel's maximum resident set), 64 in flight.",
        commands: vec![command],
        table: None,
        numbers: vec![
            format!("{} rows: {low:.1} MB", whole_number_text(few as f64)),
            format!(
                "{} rows: {high:.1} MB, {} rows/s",
                whole_number_text(many as f64),
                whole_number_text(large.rate(many))
            ),
        ],
        verdicts: vec![
            TargetVerdict {
                target: "peak memory under 60 MB at 10,000 and at 1,000,000 rows",
                measured: format!("{low:.1} MB and {high:.1} MB"),
                reached: low.max(high) < 60.0,
            },
            TargetVerdict {
                target: "equal within 20 %",
                measured: format!("{apart:.0} % apart"),
                reached: apart <= 20.0,
            },
        ],
    })
}

/// The duration of the smallest run.
fn start_up(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    rows::write(&context.folder.join("one.jsonl"), 1)?;
    let mut run = context.run("one.jsonl", "one-result.jsonl", "passthrough");
    run.arg("--overwrite");
    let mut times = Vec::new();
    for _ in 0..50 {
        times.push(measure_cost(&mut run)?.0.wall.as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let middle = median(&times);
    let (first, last) =
        (times.first().copied().unwrap_or_default(), times.last().copied().unwrap_or_default());
    Ok(ReportSection {
        title: "Start-up",
        about: "One row with the built-in model `passthrough`, from start to exit, 50 times.",
        commands: vec![command_text(&run)],
        table: None,
        numbers: vec![format!("median {middle:.1} ms (from {first:.1} to {last:.1})")],
        verdicts: vec![TargetVerdict {
            target: "a one-row `passthrough` run under 30 ms",
            measured: format!("{middle:.1} ms"),
            reached: middle < 30.0,
        }],
    })
}

/// Slow answers, many at once: the duration should be that of the answers alone.
fn many_in_flight(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let (count, parallel) = (context.rows(20_000), context.rows(2_000));
    let server = SimulatorProcess::start(&context.rowmill, &["--instant", "--latency", "1s"])?;
    rows::write(&context.folder.join("slow.jsonl"), count)?;
    let mut run = calls(context, "slow.jsonl", &server, parallel);
    let (cost, _) = measure_cost(&mut run)?;
    let ideal = Duration::from_secs(count / parallel).as_secs_f64();
    let over = (cost.wall.as_secs_f64() / ideal - 1.0) * 100.0;
    Ok(ReportSection {
        title: "Many calls in flight",
        about: "Every answer takes one second, so the ideal time is rows divided by calls in flight.",
        commands: vec!["rowmill simulate --instant --latency 1s".into(), command_text(&run)],
        table: None,
        numbers: vec![format!(
            "{} rows, {} in flight: {:.2} s (ideal {ideal:.0} s), {:.1} µs of CPU per row, peak {:.1} MB",
            whole_number_text(count as f64),
            whole_number_text(parallel as f64),
            cost.wall.as_secs_f64(),
            cost.cpu_per(count),
            cost.peak_megabytes()
        )],
        verdicts: vec![TargetVerdict {
            target: "20,000 rows at 1 s latency with `--parallel 2000` within 15 % of the ideal time",
            measured: format!("{over:.1} % over"),
            reached: over <= 15.0,
        }],
    })
}

/// How fast rows are read without a model, and how quickly a resume notices that all are done.
fn reading(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let count = context.rows(1_000_000);
    rows::write(&context.folder.join("many.jsonl"), count)?;
    let mut read = context.run("many.jsonl", "many-results.jsonl", "passthrough");
    read.args(["--overwrite", "--parallel", "64"]);
    let (reading, _) = measure_cost(&mut read)?;
    let mut resume = context.run("many.jsonl", "many-results.jsonl", "passthrough");
    resume.args(["--resume", "--parallel", "64"]);
    let (resuming, _) = measure_cost(&mut resume)?;
    let seconds = resuming.wall.as_secs_f64();
    Ok(ReportSection {
        title: "Reading and resuming",
        about: "All rows through the built-in model `passthrough`, which answers at once; then a resume of the \
                finished output, which finds nothing to do.",
        commands: vec![command_text(&read), command_text(&resume)],
        table: None,
        numbers: vec![
            format!(
                "{} rows: {} rows/s, {:.1} µs of CPU per row, peak {:.1} MB",
                whole_number_text(count as f64),
                whole_number_text(reading.rate(count)),
                reading.cpu_per(count),
                reading.peak_megabytes()
            ),
            format!("resume: {seconds:.2} s, peak {:.1} MB", resuming.peak_megabytes()),
        ],
        verdicts: vec![TargetVerdict {
            target: "resume of a finished 1,000,000-row output under 3 s",
            measured: format!("{seconds:.2} s"),
            reached: seconds < 3.0,
        }],
    })
}
