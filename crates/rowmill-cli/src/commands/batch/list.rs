//! `rowmill batch list`: all runs that are known.

use rowmill::{ExitCode, KnownBatchRun, KnownRunState, Money, Problem};
use serde_json::{Value, json};

use super::target::known_runs;
use crate::batch_flags::BatchListFlags;
use crate::batch_text::age_text;
use crate::number_text::group_digits;
use crate::printer;
use crate::text_layout::display_width;

/// The headings of the table.
const HEADINGS: [&str; 8] = ["run", "state", "jobs", "rows", "failed", "age", "cost", "output"];

/// Runs the command.
pub(super) fn list(flags: &BatchListFlags) -> Result<ExitCode, Problem> {
    let runs = known_runs()?.all();
    if flags.json {
        let all: Vec<Value> = runs.iter().map(as_json).collect();
        // Plain data, so it always serializes to JSON.
        printer::report(&serde_json::to_string_pretty(&all).unwrap_or_default())?;
    } else if runs.is_empty() {
        printer::talk("no batch job has been submitted from this machine yet");
    } else {
        printer::report(&table(&runs))?;
    }
    Ok(ExitCode::Ok)
}

fn table(runs: &[KnownBatchRun]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(cells));
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| display_width(cell)).max().unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let padded = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width.saturating_sub(display_width(cell)))));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn cells(known: &KnownBatchRun) -> Vec<String> {
    let rows = match known.rows.out {
        0 => group_digits(known.rows.selected),
        out => format!("{} of {} pending", group_digits(out), group_digits(known.rows.selected)),
    };
    let reserved = known.reserved_cost();
    let cost = match reserved > Money::ZERO {
        true => format!("{} (+ at most {reserved})", known.spent_usd),
        false => known.spent_usd.to_string(),
    };
    vec![
        known.run.clone(),
        state(known).to_owned(),
        group_digits(known.jobs.len() as u64),
        rows,
        group_digits(known.rows.failed),
        age_text(known.submitted_at_ms / 1_000),
        cost,
        known.output.display().to_string(),
    ]
}

/// The state of the jobs, unless the run says more.
fn state(known: &KnownBatchRun) -> &str {
    match known.state {
        KnownRunState::Ended => known.overall_job_state(),
        _ if !known.work_folder.exists() => "gone",
        KnownRunState::Open | KnownRunState::Cancelled => known.overall_job_state(),
    }
}

fn as_json(known: &KnownBatchRun) -> Value {
    json!({
        "run": known.run,
        "state": state(known),
        "run_state": known.state,
        "model": known.model,
        "output": known.output,
        "folder": known.folder,
        "project": known.project,
        "submitted_at": known.submitted_at_ms / 1_000,
        "rows": known.rows,
        "spent_usd": known.spent_usd,
        "reserved_usd": known.reserved_cost(),
        "jobs": known.jobs,
    })
}
