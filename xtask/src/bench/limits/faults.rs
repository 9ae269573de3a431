//! The outcome of rows when calls fail in every possible way.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::sizes::{self, SizeSpread};
use super::usage::SimulatorCounts;
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::{command_text, run_to_end};
use crate::bench::report::{ReportSection, TargetVerdict, whole_number_text};
use crate::bench::server::SimulatorProcess;

const KINDS: [&str; 8] = ["reset", "truncate", "hang", "drip", "500", "503", "429", "garbage"];

/// How the progress says that the provider is taken to be down.
const OUTAGE: &str = "waiting for the provider to come back";

/// The content of the output.
#[derive(Debug, Default)]
struct OutputCounts {
    envelopes: u64,
    rows: u64,
    ok: u64,
}

#[derive(Deserialize)]
struct EnvelopeFields {
    row_number: u64,
    ok: bool,
}

pub(super) fn faults(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let count = context.rows(100_000);
    sizes::write(&context.folder.join("faults.jsonl"), count, SizeSpread::Uniform, 20.0)?;
    let script: Vec<String> =
        KINDS.iter().flat_map(|kind| ["--fault".to_owned(), format!("{kind}=0.02")]).collect();
    let mut server = SimulatorProcess::start(&context.rowmill, &script)?;
    let mut run = context.run("faults.jsonl", "faults-results.jsonl", "openai.gpt-5.4-mini");
    run.args(["--overwrite", "-p", "{{text}}", "--parallel", "256", "--retries", "12", "--timeout", "2s"]);
    // The progress on standard error shows whether failures were ever considered an outage.
    run.arg("--progress");
    run.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "x");
    let ended = run_to_end(&mut run)?;
    if ended.code != Some(0) {
        let failure = format!("`{}` ended with {:?}:\n{}", command_text(&run), ended.code, ended.talk);
        return Err(server.explain(&TaskFailure::new(failure)));
    }
    let stats: SimulatorCounts = serde_json::from_str(&server.stats()?)
        .map_err(TaskFailure::context("cannot read the simulator's statistics"))?;
    let output = counted(&context.folder.join("faults-results.jsonl"))?;
    let closing = ended.talk.trim().lines().last().unwrap_or_default();
    let outages = ended.talk.lines().filter(|line| line.starts_with(OUTAGE)).count();
    let causes = ["RateLimited", "ServerError", "Timeout", "ConnectionError", "InvalidResponse"];
    let named = causes.iter().filter(|cause| closing.contains(**cause)).count();
    Ok(ReportSection {
        title: "Faults",
        about: "Connections reset and ended too early, answers that never come or come byte by byte, 500, 503, 429 \
                and HTML instead of JSON: each strikes two calls in a hundred.",
        commands: vec![format!("rowmill simulate {}", script.join(" ")), command_text(&run)],
        table: None,
        numbers: vec![
            format!(
                "{} rows: {} ok, {} envelopes for {} rows, in {:.0} s",
                whole_number_text(count as f64),
                whole_number_text(output.ok as f64),
                whole_number_text(output.envelopes as f64),
                whole_number_text(output.rows as f64),
                ended.wall.as_secs_f64()
            ),
            format!(
                "{} calls, at most {} at once; taken for an outage {outages} times; the closing line of the summary:",
                whole_number_text(stats.requests as f64),
                whole_number_text(stats.max_in_flight as f64)
            ),
            format!("`{closing}`"),
        ],
        verdicts: verdicts(count, &output, named == causes.len()),
    })
}

fn verdicts(count: u64, output: &OutputCounts, names_causes: bool) -> Vec<TargetVerdict> {
    vec![
        TargetVerdict {
            target: "every row ends ok, though 15 % of calls fail",
            measured: format!(
                "{} of {}",
                whole_number_text(output.ok as f64),
                whole_number_text(count as f64)
            ),
            reached: output.ok == count,
        },
        TargetVerdict {
            target: "one envelope for each row",
            measured: format!(
                "{} envelopes, {} rows",
                whole_number_text(output.envelopes as f64),
                whole_number_text(output.rows as f64)
            ),
            reached: output.envelopes == count && output.rows == count,
        },
        TargetVerdict {
            target: "the closing line of the summary names retries by cause",
            measured: if names_causes { "all five causes" } else { "not all causes" }.to_owned(),
            reached: names_causes,
        },
    ]
}

fn counted(path: &Path) -> Result<OutputCounts, TaskFailure> {
    let mut output = OutputCounts::default();
    let mut rows = HashSet::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let envelope: EnvelopeFields = serde_json::from_str(&line?)
            .map_err(TaskFailure::context("the output holds a line that is no envelope"))?;
        output.envelopes += 1;
        output.ok += u64::from(envelope.ok);
        rows.insert(envelope.row_number);
    }
    output.rows = rows.len() as u64;
    Ok(output)
}
