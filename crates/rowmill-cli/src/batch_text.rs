//! Batch jobs in words.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rowmill::{ExitCode, Money, RunReport};

use crate::number_text::{count_phrase, duration_text, group_digits};

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The time since a moment in seconds since 1970.
pub(crate) fn age_text(since: i64) -> String {
    duration_text(Duration::from_secs(now().saturating_sub(u64::try_from(since).unwrap_or_default())))
}

/// The time until a moment in seconds since 1970, at which the first job expires.
pub(crate) fn window_text(end: i64) -> String {
    let left = u64::try_from(end).unwrap_or_default().saturating_sub(now());
    match left {
        0 => "its window is over".to_owned(),
        left => format!("at most {} left", duration_text(Duration::from_secs(left))),
    }
}

/// What was spent, and what jobs may still cost.
pub(crate) fn cost_text(spent: Money, reserved: Money) -> String {
    let spent = format!("{spent} spent");
    if reserved > Money::ZERO { format!("{spent}, at most {reserved} more in jobs") } else { spent }
}

/// `3 jobs: 1 completed, 2 in_progress`.
pub(crate) fn job_counts_text(jobs: u64, states: &BTreeMap<&str, u64>) -> String {
    let states: Vec<String> =
        states.iter().map(|(state, count)| format!("{} {state}", group_digits(*count))).collect();
    format!("{}: {}", count_phrase(jobs, "job"), states.join(", "))
}

/// What the batch lane did for a run.
pub(crate) fn batch_lines(report: &RunReport) -> Vec<String> {
    let Some(batch) = &report.batch else { return Vec::new() };
    let mut line = format!(
        "batch:  {} in {}",
        count_phrase(batch.jobs.jobs, "job"),
        count_phrase(batch.rounds.into(), "round")
    );
    if batch.saved > Money::ZERO {
        line.push_str(&format!(", {} saved compared with live calls", batch.saved));
    }
    let mut lines = vec![line];
    if batch.unused.answers > 0 {
        let (answers, cost) = (count_phrase(batch.unused.answers, "answer"), batch.unused.cost);
        lines.push(format!("unused: {answers} that no row wanted any more, {cost}"));
    }
    if batch.rows_out > 0 {
        let rows = count_phrase(batch.rows_out, "row");
        let jobs = batch.jobs.submitted + batch.jobs.waiting;
        lines.push(match jobs {
            0 => format!("pending: {rows} without a result, in no job"),
            jobs => format!(
                "pending: {rows} in {} ({} of {} requests finished)",
                count_phrase(jobs, "job"),
                group_digits(batch.jobs.requests_finished),
                group_digits(batch.jobs.requests_out)
            ),
        });
    }
    if batch.jobs.waiting > 0 {
        lines.push(format!("unsent: {} not submitted", count_phrase(batch.jobs.waiting, "job")));
    }
    lines
}

/// How to go on with a run that has batch jobs.
pub(crate) fn next_batch_step(report: &RunReport) -> Option<String> {
    let batch = report.batch.as_ref()?;
    if report.exit == ExitCode::Submitted {
        return Some(
            "`rowmill batch retrieve` collects the results that are ready; the same command with `--resume` \
             waits for all of them"
                .to_owned(),
        );
    }
    let is_over = report.stopped.is_none() && batch.rows_out > 0 && batch.is_cancelled;
    is_over.then(|| "`rowmill batch retry` sends the rows without a result again".to_owned())
}
