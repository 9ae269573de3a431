//! Ten million rows through a model without cost, with constant memory.

use super::{ROWS, files};
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::{ProcessCost, command_text, measure_cost};
use crate::bench::report::{ReportSection, ReportTable, TargetVerdict, whole_number_text};

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
pub(super) fn through(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let count = context.rows(ROWS);
    let mut table = ReportTable {
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
        let file = files::made(context, count, format)?;
        let mut most = 0.0_f64;
        for (name, flags) in CHOICES {
            let (cost, command) = run(context, &file, flags, count)?;
            most = most.max(cost.peak_megabytes());
            table.rows.push(vec![
                format.to_owned(),
                format!("`{name}`").replace("`all rows`", "all rows"),
                format!("{:.1}", cost.wall.as_secs_f64()),
                format!("{:.1}", cost.cpu.as_secs_f64()),
                whole_number_text(cost.rate(count)),
                whole_number_text(cost.peak_megabytes()),
            ]);
            commands.push(command);
        }
        verdicts.push(TargetVerdict {
            target,
            measured: format!("{most:.0} MB at most"),
            reached: most < limit,
        });
    }
    Ok(ReportSection {
        title: "Ten million rows through `passthrough`",
        about: "Each run reads the file, makes a prompt of every row that is chosen, answers it with its own prompt, \
                and writes ledger and output.",
        commands,
        table: Some(table),
        numbers: vec![format!("{} rows in each file", whole_number_text(count as f64))],
        verdicts,
    })
}

fn run(
    context: &BenchContext,
    file: &str,
    flags: &[&str],
    count: u64,
) -> Result<(ProcessCost, String), TaskFailure> {
    let offset = (count - 1_000).to_string();
    let mut command = context.run(file, "through.jsonl", "passthrough");
    command.args(["--overwrite", "-p", "{{id}}"]);
    command.args(flags.iter().map(|flag| if *flag == "OFFSET" { offset.as_str() } else { flag }));
    let (cost, _) = measure_cost(&mut command)?;
    Ok((cost, command_text(&command)))
}
