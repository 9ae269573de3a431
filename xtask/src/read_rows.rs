//! Reads a file to its end and discards the rows, so that reading alone can be measured.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rowmill_core::ports::ReadLimit;
use rowmill_data::{InputLocation, InputSpec, SqlSettings, open_dataset, sql_dataset};

use crate::{TaskFailure, printer};

/// Read every row of a file and print how many there were.
#[derive(Debug, Args)]
pub(crate) struct ReadRowsFlags {
    /// The reader.
    #[arg(long, value_enum)]
    with: RowReaderKind,
    /// A query whose results are read instead of the rows.
    #[arg(long, value_name = "QUERY")]
    sql: Option<String>,
    /// The file.
    file: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RowReaderKind {
    /// rowmill's own readers, as a run uses them.
    Rowmill,
    /// A loop over lines that parses each into a `serde_json::Value`.
    SerdeJson,
}

/// Reads the file.
pub(crate) fn read_rows(flags: &ReadRowsFlags) -> Result<(), TaskFailure> {
    let rows = match flags.with {
        RowReaderKind::Rowmill => with_rowmill(&flags.file, flags.sql.as_deref())?,
        RowReaderKind::SerdeJson => with_serde_json(&flags.file)?,
    };
    printer::say(rows);
    Ok(())
}

fn with_rowmill(path: &Path, sql: Option<&str>) -> Result<u64, TaskFailure> {
    let failure = |problem: rowmill_types::Problem| TaskFailure::new(problem.to_string());
    let location = InputLocation::File(path.to_owned());
    let spec = InputSpec::new(location, None);
    let mut rows = open_dataset(&spec).map_err(failure)?;
    let temp = std::env::temp_dir();
    if let Some(sql) = sql {
        let settings = SqlSettings { temp: &temp, types: &[] };
        rows = sql_dataset(rows, sql, &settings, Arc::new(|_| {})).map_err(failure)?;
    }
    let mut source = rows.open().map_err(failure)?;
    let mut batch = Vec::new();
    let mut count = 0;
    loop {
        let more = source.read(&mut batch, ReadLimit { rows: 256, bytes: 256 * 1024 }).map_err(failure)?;
        count += batch.iter().filter(|row| row.is_ok()).count() as u64;
        batch.clear();
        if !more {
            return Ok(count);
        }
    }
}

fn with_serde_json(path: &Path) -> Result<u64, TaskFailure> {
    let mut lines = BufReader::with_capacity(256 * 1024, File::open(path)?);
    let mut line = String::new();
    let mut rows = 0;
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(rows);
        }
        let row: serde_json::Value =
            serde_json::from_str(&line).map_err(TaskFailure::context("a line is not JSON"))?;
        rows += u64::from(row.is_object());
    }
}
