//! Reading alone.

use std::process::Command;

use super::{ROWS, duckdb, files};
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::measure_cost;
use crate::bench::report::{ReportSection, ReportTable, whole_number_text};

/// Every row of a file, read by rowmill, by the plain loop and by DuckDB.
pub(super) fn reading(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let count = context.rows(ROWS);
    let mut table = ReportTable {
        head: ["file", "read by", "rows/s", "seconds", "CPU seconds", "peak MB"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
    };
    let mut sizes = Vec::new();
    for format in ["jsonl", "parquet"] {
        let file = files::made(context, count, format)?;
        sizes.push(format!(
            "{format}: {} rows, {}",
            whole_number_text(count as f64),
            files::size(context, &file)?
        ));
        let mut readers = vec![("rowmill", rows(context, "rowmill", &file))];
        if format == "jsonl" {
            readers.push(("a loop with `serde_json`, into `Value`", rows(context, "serde-json", &file)));
        }
        readers.push(("DuckDB, all cores, values only counted", duckdb::reading(context, &file)));
        readers.push(("DuckDB, rows handed to Python", duckdb::handing_over(context, &file)));
        for (name, mut command) in readers {
            let (cost, output) = measure_cost(&mut command)?;
            if output.trim() != count.to_string() {
                return Err(TaskFailure::new(format!("{name} saw {} rows of {count}", output.trim())));
            }
            table.rows.push(vec![
                format.to_owned(),
                name.to_owned(),
                whole_number_text(cost.rate(count)),
                format!("{:.1}", cost.wall.as_secs_f64()),
                format!("{:.1}", cost.cpu.as_secs_f64()),
                whole_number_text(cost.peak_megabytes()),
            ]);
        }
    }
    Ok(ReportSection {
        title: "Reading",
        about: "Every row of a file of eleven columns (numbers, texts, dates, a list, an object), read and thrown \
                away. rowmill makes a row of JSON text of each, on one thread, Parquet on two, as a run does. DuckDB \
                uses all cores; counting the values of each column is the least that makes it decode them. Peaks of DuckDB \
                may count pages of the file. For information.",
        commands: vec![
            "cargo xtask make-rows --rows 10000000 --format jsonl --output made.jsonl".to_owned(),
            "cargo xtask read-rows --with rowmill made.jsonl".to_owned(),
        ],
        table: Some(table),
        numbers: sizes,
        verdicts: vec![],
    })
}

fn rows(context: &BenchContext, reader: &str, file: &str) -> Command {
    let mut command = Command::new(&context.xtask);
    command.current_dir(&context.folder).args(["read-rows", "--with", reader, file]);
    command
}
