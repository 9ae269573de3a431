//! Ten million rows through a model without cost, with constant memory.

use super::{ROWS, files};
use crate::Failure;
use crate::bench::measure::{Cost, cost_of, shown};
use crate::bench::report::{Section, Table, Verdict, whole};
use crate::bench::stage::Stage;

const QUERY: &str =
    "SELECT id, title, meta ->> 'lang' AS lang FROM input WHERE split = 'eval' AND score > 0.5";

/// Ways to choose rows, each with its flags.
const CHOICES: &[(&str, &[&str])] = &[
    ("all rows", &[]),
    ("--sample 1000", &["--sample", "1000"]),
    ("--offset, --limit", &["--offset", "OFFSET", "--limit", "1000"]),
    ("--where", &["--where", "split = 'eval'"]),
    ("--sql", &["--sql", QUERY]),
];

/// The file's rows through `passthrough`.
pub(super) fn through(stage: &Stage) -> Result<Section, Failure> {
    let count = stage.rows(ROWS);
    let mut table = Table {
        head: ["input", "rows chosen by", "seconds", "CPU seconds", "input rows/s", "peak MB"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    let mut verdicts = Vec::new();
    let mut commands = Vec::new();
    for (format, limit, target) in [
        ("jsonl", 150.0, "JSONL: peak memory under 150 MB, however rows are chosen"),
        ("parquet", 300.0, "Parquet: peak memory under 300 MB, however rows are chosen"),
    ] {
        let file = files::made(stage, count, format)?;
        let mut most = 0.0_f64;
        for (name, flags) in CHOICES {
            let (cost, command) = run(stage, &file, flags, count)?;
            most = most.max(cost.peak_megabytes());
            table.rows.push(vec![
                format.to_owned(),
                format!("`{name}`").replace("`all rows`", "all rows"),
                format!("{:.1}", cost.wall.as_secs_f64()),
                format!("{:.1}", cost.cpu.as_secs_f64()),
                whole(cost.rate(count)),
                whole(cost.peak_megabytes()),
            ]);
            commands.push(command);
        }
        verdicts.push(Verdict { target, measured: format!("{most:.0} MB at most"), reached: most < limit });
    }
    Ok(Section {
        title: "Ten million rows through `passthrough`",
        about: "Each run reads the file, makes a prompt of every row that is chosen, answers it with its own prompt, \
                and writes ledger and output.",
        commands,
        table: Some(table),
        numbers: vec![format!("{} rows in each file", whole(count as f64))],
        verdicts,
    })
}

fn run(stage: &Stage, file: &str, flags: &[&str], count: u64) -> Result<(Cost, String), Failure> {
    let offset = (count - 1_000).to_string();
    let mut command = stage.run(file, "through.jsonl", "passthrough");
    command.args(["--overwrite", "-p", "{{id}}"]);
    command.args(flags.iter().map(|flag| if *flag == "OFFSET" { offset.as_str() } else { flag }));
    let (cost, _) = cost_of(&mut command)?;
    Ok((cost, shown(&command)))
}
