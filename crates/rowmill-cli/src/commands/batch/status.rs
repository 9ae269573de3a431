//! `rowmill batch status`: asks the provider for the state of jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rowmill::{
    BatchJobProgress, BatchRunStatus, ExitCode, KnownBatchRun, Money, Problem, ProblemCode, RunControl,
    RunNotice, batch_run_status, send_notification,
};
use serde_json::{Value, json};

use super::target::{find_run, notify_options_of};
use crate::batch_flags::BatchStatusFlags;
use crate::batch_text::{age_text, cost_text, job_counts_text, window_text};
use crate::number_text::group_digits;
use crate::printer;
use crate::process_environment::process_environment;
use crate::resolve::usage_problem;
use crate::vocabulary::vocabulary;

/// The first wait between two looks at jobs.
const FIRST_LOOK: Duration = Duration::from_secs(10);
/// The longest one.
const LONGEST_LOOK: Duration = Duration::from_secs(300);

/// Runs the command.
pub(super) fn status(flags: &BatchStatusFlags) -> Result<ExitCode, Problem> {
    if !flags.wait && !flags.notify.given().is_empty() {
        return Err(usage_problem("--notify and --notify-url require --wait"));
    }
    let known = find_run(&flags.target)?;
    let cannot =
        |error: std::io::Error| Problem::new(ProblemCode::Internal, "cannot start the runtime").cause(error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let control = RunControl {
        vocabulary: vocabulary(),
        notice: Arc::new(|notice: RunNotice| printer::talk(&printer::notice_line(&notice))),
        ..RunControl::silent_in(process_environment().clone())
    };
    let notify_options = notify_options_of(&known, &flags.notify);
    notify_options.check()?;
    let status = runtime.block_on(async {
        match flags.wait {
            true => wait_for_end(&known, &control, flags.poll_every.unwrap_or(FIRST_LOOK)).await,
            false => batch_run_status(&known, &control).await,
        }
    })?;
    let status = match flags.target.id() {
        Some(id) => status.restrict_to_job(id),
        None => status,
    };
    if flags.wait {
        runtime.block_on(send_notification(&notify_options, &as_json(&known, &status), &control));
    }
    // Plain data, so it always serializes to JSON.
    let json = || serde_json::to_string_pretty(&as_json(&known, &status)).unwrap_or_default();
    printer::report(&if flags.json { json() } else { as_text(&known, &status) })?;
    Ok(ExitCode::Ok)
}

/// Asks less and less often until no job is out. A provider that does not answer is asked again.
async fn wait_for_end(
    known: &KnownBatchRun,
    control: &RunControl,
    first: Duration,
) -> Result<BatchRunStatus, Problem> {
    let (mut wait, mut last) = (first, String::new());
    loop {
        match batch_run_status(known, control).await {
            Ok(status) if status.jobs_out == 0 => return Ok(status),
            Ok(status) if status.state != last => {
                let finished = group_digits(status.completed + status.failed);
                let all = group_digits(status.requests);
                printer::talk(&format!("{}: {finished} of {all} requests finished", status.state));
                last = status.state;
            }
            Ok(_) => {}
            Err(problem) if problem.code == ProblemCode::ProviderDown => {
                printer::talk(&printer::warning_line(&problem.message));
            }
            Err(problem) => return Err(problem),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 3 / 2).min(LONGEST_LOOK.max(first));
    }
}

fn as_text(known: &KnownBatchRun, status: &BatchRunStatus) -> String {
    let mut lines = vec![
        format!("Batch job status: {}", status.state),
        format!("run:      {}, model {}", known.run, known.model),
        format!("jobs:     {}", jobs_text(status)),
        format!("requests: {}", requests_text(status)),
    ];
    let reasons = status.jobs.iter().filter(|job| job.progress != BatchJobProgress::Collected);
    lines.extend(reasons.filter_map(|job| job.reason.as_ref()).map(|reason| format!("reason:   {reason}")));
    if let Some(oldest) = status.oldest {
        let window = status.first_expiry.map(window_text).map(|left| format!("; {left}")).unwrap_or_default();
        lines.push(format!("age:      {}{window}", age_text(oldest)));
    }
    if status.reserved_usd > Money::ZERO || status.spent_usd > Money::ZERO {
        lines.push(format!("cost:     {}", cost_text(status.spent_usd, status.reserved_usd)));
    }
    lines.push(format!("output:   {}", known.output.display()));
    lines.join("\n")
}

fn requests_text(status: &BatchRunStatus) -> String {
    let mut text = format!(
        "{} of {} finished",
        group_digits(status.completed + status.failed),
        group_digits(status.requests)
    );
    if status.failed > 0 {
        text.push_str(&format!(", {} without an answer", group_digits(status.failed)));
    }
    text
}

fn jobs_text(status: &BatchRunStatus) -> String {
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    status.jobs.iter().for_each(|job| *states.entry(job.state.as_str()).or_default() += 1);
    let ids: Vec<&str> = status.jobs.iter().filter_map(|job| job.id.as_deref()).collect();
    match ids.as_slice() {
        [only] if status.jobs.len() == 1 => (*only).to_owned(),
        _ => job_counts_text(status.jobs.len() as u64, &states),
    }
}

fn as_json(known: &KnownBatchRun, status: &BatchRunStatus) -> Value {
    json!({
        "run": status.run,
        "state": status.state,
        "model": known.model,
        "output": known.output,
        "folder": known.folder,
        "submitted_at": known.submitted_at_ms / 1_000,
        "jobs_out": status.jobs_out,
        "requests": status.requests,
        "completed": status.completed,
        "failed": status.failed,
        "oldest": status.oldest,
        "first_expiry": status.first_expiry,
        "spent_usd": status.spent_usd,
        "reserved_usd": status.reserved_usd,
        "jobs": status.jobs,
    })
}
