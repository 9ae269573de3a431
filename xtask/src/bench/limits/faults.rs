//! The outcome of rows when calls fail in every possible way.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::sizes::{self, Spread};
use super::usage::Stats;
use crate::Failure;
use crate::bench::measure::{end_of, shown};
use crate::bench::report::{Section, Verdict, whole};
use crate::bench::server::Server;
use crate::bench::stage::Stage;

const KINDS: [&str; 8] = ["reset", "truncate", "hang", "drip", "500", "503", "429", "garbage"];

/// How the progress says that the provider is taken to be down.
const OUTAGE: &str = "waiting for the provider to come back";

/// The content of the output.
#[derive(Debug, Default)]
struct Output {
    envelopes: u64,
    rows: u64,
    ok: u64,
}

#[derive(Deserialize)]
struct Envelope {
    row_number: u64,
    ok: bool,
}

pub(super) fn faults(stage: &Stage) -> Result<Section, Failure> {
    let count = stage.rows(100_000);
    sizes::write(&stage.folder.join("faults.jsonl"), count, Spread::Uniform, 20.0)?;
    let script: Vec<String> =
        KINDS.iter().flat_map(|kind| ["--fault".to_owned(), format!("{kind}=0.02")]).collect();
    let mut server = Server::start(&stage.rowmill, &script)?;
    let mut run = stage.run("faults.jsonl", "faults-results.jsonl", "openai.gpt-5.4-mini");
    run.args(["--overwrite", "-p", "{{text}}", "--parallel", "256", "--retries", "12", "--timeout", "2s"]);
    // The progress on standard error shows whether failures were ever considered an outage.
    run.arg("--progress");
    run.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "x");
    let ended = end_of(&mut run)?;
    if ended.code != Some(0) {
        let failure = format!("`{}` ended with {:?}:\n{}", shown(&run), ended.code, ended.talk);
        return Err(server.explain(&Failure::new(failure)));
    }
    let stats: Stats = serde_json::from_str(&server.stats()?)
        .map_err(Failure::of("cannot read the simulator's statistics"))?;
    let output = counted(&stage.folder.join("faults-results.jsonl"))?;
    let closing = ended.talk.trim().lines().last().unwrap_or_default();
    let outages = ended.talk.lines().filter(|line| line.starts_with(OUTAGE)).count();
    let causes = ["RateLimited", "ServerError", "Timeout", "ConnectionError", "InvalidResponse"];
    let named = causes.iter().filter(|cause| closing.contains(**cause)).count();
    Ok(Section {
        title: "Faults",
        about: "Connections reset and ended too early, answers that never come or come byte by byte, 500, 503, 429 \
                and HTML instead of JSON: each strikes two calls in a hundred.",
        commands: vec![format!("rowmill simulate {}", script.join(" ")), shown(&run)],
        table: None,
        numbers: vec![
            format!(
                "{} rows: {} ok, {} envelopes for {} rows, in {:.0} s",
                whole(count as f64),
                whole(output.ok as f64),
                whole(output.envelopes as f64),
                whole(output.rows as f64),
                ended.wall.as_secs_f64()
            ),
            format!(
                "{} calls, at most {} at once; taken for an outage {outages} times; the closing line of the summary:",
                whole(stats.requests as f64),
                whole(stats.max_in_flight as f64)
            ),
            format!("`{closing}`"),
        ],
        verdicts: verdicts(count, &output, named == causes.len()),
    })
}

fn verdicts(count: u64, output: &Output, names_causes: bool) -> Vec<Verdict> {
    vec![
        Verdict {
            target: "every row ends ok, though 15 % of calls fail",
            measured: format!("{} of {}", whole(output.ok as f64), whole(count as f64)),
            reached: output.ok == count,
        },
        Verdict {
            target: "one envelope for each row",
            measured: format!(
                "{} envelopes, {} rows",
                whole(output.envelopes as f64),
                whole(output.rows as f64)
            ),
            reached: output.envelopes == count && output.rows == count,
        },
        Verdict {
            target: "the closing line of the summary names retries by cause",
            measured: if names_causes { "all five causes" } else { "not all causes" }.to_owned(),
            reached: names_causes,
        },
    ]
}

fn counted(path: &Path) -> Result<Output, Failure> {
    let mut output = Output::default();
    let mut rows = HashSet::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let envelope: Envelope = serde_json::from_str(&line?)
            .map_err(Failure::of("the output holds a line that is no envelope"))?;
        output.envelopes += 1;
        output.ok += u64::from(envelope.ok);
        rows.insert(envelope.row_number);
    }
    output.rows = rows.len() as u64;
    Ok(output)
}
