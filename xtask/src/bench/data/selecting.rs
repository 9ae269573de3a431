//! Queries, compared with DuckDB.

use std::process::Command;

use super::{ROWS, duckdb, files};
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::measure_cost;
use crate::bench::report::{ReportSection, ReportTable, TargetVerdict, whole_number_text};

/// The query that has a target.
const SORT: &str = "a sort of all";
/// The maximum factor compared with DuckDB.
const MOST: f64 = 3.0;

/// Typical queries for selecting rows, which both understand.
const QUERIES: &[(&str, &str)] = &[
    ("a filter", "SELECT id, title FROM input WHERE split = 'eval' AND score > 0.9"),
    ("a group", "SELECT split, count(*) AS n, avg(score) AS mean FROM input GROUP BY split ORDER BY split"),
    ("the best of all", "SELECT id, score FROM input ORDER BY score DESC, id LIMIT 100"),
    (SORT, "SELECT id FROM input ORDER BY title, id"),
];

/// The same queries over the same files.
pub(super) fn selecting(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let count = context.rows(ROWS) / 10;
    let mut table = ReportTable {
        head: ["input", "query", "rowmill s", "rowmill MB", "DuckDB s", "DuckDB MB"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    let mut longest = 0.0_f64;
    for format in ["jsonl", "parquet"] {
        let file = files::made(context, count, format)?;
        for (name, query) in QUERIES {
            let mut ours = Command::new(&context.xtask);
            ours.current_dir(&context.folder).args(["read-rows", "--with", "rowmill", "--sql", query, &file]);
            let (cost, count) = measure_cost(&mut ours)?;
            let (rival, rows) = measure_cost(&mut duckdb::query(context, query, &file))?;
            if count.trim() != rows.trim() {
                let (ours, theirs) = (count.trim(), rows.trim());
                return Err(TaskFailure::new(format!("{name}: {ours} rows here, {theirs} with DuckDB")));
            }
            if *name == SORT {
                longest = longest.max(cost.wall.as_secs_f64() / rival.wall.as_secs_f64());
            }
            table.rows.push(vec![
                format.to_owned(),
                (*name).to_owned(),
                format!("{:.1}", cost.wall.as_secs_f64()),
                whole_number_text(cost.peak_megabytes()),
                format!("{:.1}", rival.wall.as_secs_f64()),
                whole_number_text(rival.peak_megabytes()),
            ]);
        }
    }
    Ok(ReportSection {
        title: "Selecting with SQL",
        about: "The same query over the same file; the rows that come out are counted. rowmill works in bounded \
                memory, DuckDB on all cores and hands its rows to Python. Times are of whole processes.",
        commands: QUERIES
            .iter()
            .map(|(_, query)| format!("cargo xtask read-rows --with rowmill --sql \"{query}\" made.parquet"))
            .collect(),
        table: Some(table),
        numbers: vec![format!("{} rows in each file", whole_number_text(count as f64))],
        verdicts: vec![TargetVerdict {
            target: "a sort of a million rows takes at most 3 times as long as DuckDB",
            measured: format!("{longest:.1} times"),
            reached: longest <= MOST,
        }],
    })
}
