//! `rowmill results --sql`: prints the rows of a query.

use std::path::Path;
use std::sync::Arc;

use rowmill::results::QueryContext;
use rowmill::{DiagnosticText, ExitCode, Problem};

use crate::number_text::group_digits;
use crate::printer::{self, OutputReader};
use crate::process_environment::process_environment;
use crate::text_layout::{CellAlign, TextTable, escape_control, screen_width, truncate_to_width};

/// The maximum number of rows that are printed as a table.
const MOST_ROWS: usize = 1_000;
/// The maximum width of a column, so that one long text does not push the others off the screen.
const WIDEST: usize = 40;

/// Runs a query over the results of a run and prints its rows.
pub(crate) fn query(output: &Path, sql: &str, json: bool) -> Result<ExitCode, Problem> {
    let surroundings = QueryContext {
        notice: Arc::new(|text: DiagnosticText| printer::talk(&printer::warning_line(&text))),
        environment: process_environment().clone(),
    };
    if json {
        let mut reader = Ok(OutputReader::Reading);
        rowmill::results::query_results(output, sql, surroundings, |row| {
            reader = printer::data(row.json_text());
            reader == Ok(OutputReader::Reading)
        })?;
        return reader.map(|_| ExitCode::Ok);
    }
    let (mut head, mut rows, mut count) = (Vec::new(), Vec::new(), 0_u64);
    rowmill::results::query_results(output, sql, surroundings, |row| {
        count += 1;
        if rows.len() < MOST_ROWS {
            head = row.fields().map(|(name, _)| escape_control(name)).collect();
            rows.push(row.fields().map(|(_, value)| cell(value)).collect::<Vec<_>>());
        }
        true
    })?;
    printer::data(&text(head, rows, count))?;
    Ok(ExitCode::Ok)
}

fn text(head: Vec<String>, rows: Vec<Vec<(CellAlign, String)>>, count: u64) -> String {
    let shown = rows.len() as u64;
    let sides: Vec<CellAlign> = rows.first().into_iter().flatten().map(|(side, _)| *side).collect();
    let mut table = TextTable::new(&sides);
    table.row(head);
    for row in rows {
        table.row(row.into_iter().map(|(_, text)| truncate_to_width(&text, WIDEST)));
    }
    let mut lines = if count == 0 { Vec::new() } else { table.lines(0, screen_width().max(table.width())) };
    lines.push(match count {
        0 => "no rows".to_owned(),
        1 => "1 row".to_owned(),
        _ if count > shown => {
            format!(
                "{} rows, {} of them shown; `--json` prints all",
                group_digits(count),
                group_digits(shown)
            )
        }
        _ => format!("{} rows", group_digits(count)),
    });
    lines.join("\n")
}

/// A value as a cell: texts without quotes, numbers right-aligned, nothing for null.
fn cell(value: &str) -> (CellAlign, String) {
    match serde_json::from_str::<serde_json::Value>(value) {
        Ok(serde_json::Value::String(text)) => (CellAlign::Left, escape_control(&text)),
        Ok(serde_json::Value::Null) => (CellAlign::Left, String::new()),
        Ok(serde_json::Value::Number(_)) => (CellAlign::Right, value.to_owned()),
        _ => (CellAlign::Left, escape_control(value)),
    }
}
