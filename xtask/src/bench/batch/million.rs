//! A million rows in twenty jobs.

use super::trial::{RowmillRuns, head};
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::report::{ReportSection, ReportTable, TargetVerdict, whole_number_text};

const ROWS: u64 = 1_000_000;
/// OpenAI accepts this many requests in a job.
const ROWS_PER_JOB: u64 = 50_000;
/// The most memory, in megabytes.
const MOST: f64 = 150.0;

pub(super) fn million_rows(context: &BenchContext) -> Result<ReportSection, TaskFailure> {
    let rows = context.rows(ROWS);
    let (trial, simulator) = RowmillRuns::prepare(context, "million", rows)?.measure()?;
    let [submitted, collected] = [&trial.submit, &trial.collect].map(|cost| cost.peak_megabytes());
    let mut commands = vec!["rowmill simulate".to_owned()];
    commands.extend(trial.commands.clone());
    Ok(ReportSection {
        title: "A million rows",
        about: "The same rows, prompt and schema, in jobs of 50,000 requests, which is the most that OpenAI accepts. All \
                jobs are complete before they are collected by one process. One run.",
        commands,
        table: Some(ReportTable { head: head(), rows: trial.lines().into() }),
        numbers: vec![format!(
            "{} jobs; the simulator, which keeps what it needs to tell repeated rows, took {} MB",
            simulator.jobs,
            whole_number_text(simulator.peak)
        )],
        verdicts: vec![
            TargetVerdict {
                target: "1,000,000 rows submitted in 20 jobs, with less than 150 MB",
                measured: format!("{submitted:.0} MB"),
                reached: submitted < MOST && simulator.jobs == rows.div_ceil(ROWS_PER_JOB),
            },
            TargetVerdict {
                target: "1,000,000 rows collected from them, with less than 150 MB",
                measured: format!("{collected:.0} MB"),
                reached: collected < MOST,
            },
        ],
    })
}
