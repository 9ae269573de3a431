//! Queries, beside DuckDB.

use super::{ROWS, duckdb, files};
use crate::Failure;
use crate::bench::measure::cost_of;
use crate::bench::report::{Section, Table, whole};
use crate::bench::stage::Stage;

/// Queries that people select rows with. Both understand them.
const QUERIES: &[(&str, &str)] = &[
    ("a filter", "SELECT id, title FROM input WHERE split = 'eval' AND score > 0.9"),
    ("a group", "SELECT split, count(*) AS n, avg(score) AS mean FROM input GROUP BY split ORDER BY split"),
    ("the best of all", "SELECT id, score FROM input ORDER BY score DESC, id LIMIT 100"),
    ("a sort of all", "SELECT id FROM input ORDER BY title, id"),
];

/// The same queries over the same files.
pub(super) fn selecting(stage: &Stage) -> Result<Section, Failure> {
    let count = stage.rows(ROWS) / 10;
    let mut table = Table {
        head: ["input", "query", "rowmill s", "rowmill MB", "DuckDB s", "DuckDB MB"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    for format in ["jsonl", "parquet"] {
        let file = files::made(stage, count, format)?;
        for (name, query) in QUERIES {
            let mut ours = stage.run(&file, "-", "passthrough");
            ours.args(["-p", "x", "--sql", query]);
            let (cost, output) = cost_of(&mut ours)?;
            let (rival, rows) = cost_of(&mut duckdb::query(stage, query, &file))?;
            if output.lines().count().to_string() != rows.trim() {
                let (ours, theirs) = (output.lines().count(), rows.trim());
                return Err(Failure::new(format!("{name}: {ours} rows here, {theirs} with DuckDB")));
            }
            table.rows.push(vec![
                format.to_owned(),
                (*name).to_owned(),
                format!("{:.1}", cost.wall.as_secs_f64()),
                whole(cost.peak_megabytes()),
                format!("{:.1}", rival.wall.as_secs_f64()),
                whole(rival.peak_megabytes()),
            ]);
        }
    }
    Ok(Section {
        title: "Selecting with SQL",
        about: "The same query over the same file. rowmill's time includes a run over the rows that come out; it \
                works on one thread in bounded memory, DuckDB on all cores. For information.",
        commands: QUERIES.iter().map(|(_, query)| format!("rowmill run … --sql \"{query}\"")).collect(),
        table: Some(table),
        numbers: vec![format!("{} rows in each file", whole(count as f64))],
        verdicts: vec![],
    })
}
