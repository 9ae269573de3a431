//! Reading alone.

use std::process::Command;

use super::{ROWS, duckdb, files};
use crate::Failure;
use crate::bench::measure::cost_of;
use crate::bench::report::{Section, Table, whole};
use crate::bench::stage::Stage;

/// Every row of a file, read by rowmill, by the plain loop and by DuckDB.
pub(super) fn reading(stage: &Stage) -> Result<Section, Failure> {
    let count = stage.rows(ROWS);
    let mut table = Table {
        head: ["file", "read by", "rows/s", "seconds", "CPU seconds", "peak MB"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
    };
    let mut sizes = Vec::new();
    for format in ["jsonl", "parquet"] {
        let file = files::made(stage, count, format)?;
        sizes.push(format!("{format}: {} rows, {}", whole(count as f64), files::size(stage, &file)?));
        let mut readers = vec![("rowmill", rows(stage, "rowmill", &file))];
        if format == "jsonl" {
            readers.push(("a loop with `serde_json`, into `Value`", rows(stage, "serde-json", &file)));
        }
        readers.push(("DuckDB, all cores, values only counted", duckdb::reading(stage, &file)));
        readers.push(("DuckDB, rows handed to Python", duckdb::handing_over(stage, &file)));
        for (name, mut command) in readers {
            let (cost, output) = cost_of(&mut command)?;
            if output.trim() != count.to_string() {
                return Err(Failure::new(format!("{name} saw {} rows of {count}", output.trim())));
            }
            table.rows.push(vec![
                format.to_owned(),
                name.to_owned(),
                whole(cost.rate(count)),
                format!("{:.1}", cost.wall.as_secs_f64()),
                format!("{:.1}", cost.cpu.as_secs_f64()),
                whole(cost.peak_megabytes()),
            ]);
        }
    }
    Ok(Section {
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

fn rows(stage: &Stage, reader: &str, file: &str) -> Command {
    let mut command = Command::new(&stage.xtask);
    command.current_dir(&stage.folder).args(["read-rows", "--with", reader, file]);
    command
}
