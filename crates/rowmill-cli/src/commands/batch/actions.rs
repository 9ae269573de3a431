//! `rowmill batch retrieve`, `cancel` and `retry`: each works on a run for a moment.

use std::io::IsTerminal;

use rowmill::{
    BatchRunAction, ContinuedRunOutcome, ExitCode, KnownBatchRun, NotifyOptions, Problem, RunControl,
    RunNotification, RunReport, StopCause, continue_batch_run, send_notification,
};
use serde_json::{Value, json};

use super::target::{enter_folder, find_run, find_run_to_cancel, known_runs, notify_options_of};
use crate::batch_flags::{BatchCancelFlags, BatchRetrieveFlags, BatchRetryFlags};
use crate::notify_flags::NotifyFlags;
use crate::number_text::count_phrase;
use crate::printer;
use crate::resolve::DisplayOptions;
use crate::run_with_signals::run_with_signals;
use crate::summary_text::{SummaryContext, summary_text};
use crate::text_layout::stderr_width;

/// What a command prints on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownResult {
    /// The path of the output.
    Path,
    /// `Batch job status: ` and the state.
    State,
    Json,
}

/// Collects the results that are there.
pub(super) fn retrieve(flags: &BatchRetrieveFlags) -> Result<ExitCode, Problem> {
    let known = find_run(&flags.target)?;
    let outcome = work_on(&known, &[BatchRunAction::Collect], Some(&flags.notify))?;
    let shown = if flags.json { ShownResult::Json } else { ShownResult::Path };
    show(&known, &outcome, shown)
}

/// Cancels the jobs of a run.
pub(super) fn cancel(flags: &BatchCancelFlags) -> Result<ExitCode, Problem> {
    let known = find_run_to_cancel(&flags.target)?;
    let action = if flags.no_wait { BatchRunAction::Cancel } else { BatchRunAction::CancelAndWait };
    let outcome = work_on(&known, &[action], None)?;
    let shown = if flags.json { ShownResult::Json } else { ShownResult::State };
    match show(&known, &outcome, shown)? {
        // What was asked for has been done.
        ExitCode::Interrupted if is_cancelled(&outcome) => Ok(ExitCode::Ok),
        code => Ok(code),
    }
}

/// Sends rows without a result again.
pub(super) fn retry(flags: &BatchRetryFlags) -> Result<ExitCode, Problem> {
    let known = find_run(&flags.target)?;
    let actions = [BatchRunAction::Collect, BatchRunAction::Retry];
    let outcome = work_on(&known, &actions, Some(&flags.notify))?;
    if matches!(outcome, ContinuedRunOutcome::AllOk) {
        printer::talk("no row failed: there is nothing to send again");
    }
    show(&known, &outcome, if flags.json { ShownResult::Json } else { ShownResult::Path })
}

fn is_cancelled(outcome: &ContinuedRunOutcome) -> bool {
    matches!(outcome, ContinuedRunOutcome::Ran(report) if report.batch.is_some_and(|batch| batch.is_cancelled))
}

/// Works on a run, one action after the other. If rows are still pending after one, or none is left to work on, the
/// others have nothing to do.
fn work_on(
    known: &KnownBatchRun,
    actions: &[BatchRunAction],
    notify: Option<&NotifyFlags>,
) -> Result<ContinuedRunOutcome, Problem> {
    enter_folder(known)?;
    let notify_options = notify.map(|flags| notify_options_of(known, flags)).unwrap_or_default();
    notify_options.check()?;
    let show = DisplayOptions {
        progress: true,
        every: None,
        envelopes_on_stdout: false,
        wanted: None,
        budget: known.spec().map(|spec| spec.work.budget).unwrap_or_default(),
        json_summary: false,
    };
    run_with_signals(show, async |control| {
        let mut outcome = ContinuedRunOutcome::SomeFailed;
        for action in actions {
            outcome = Box::pin(continue_batch_run(known, *action, control)).await?;
            if is_end(&outcome) {
                break;
            }
        }
        notify_end(known, (&notify_options, &outcome), control).await;
        Ok(outcome)
    })
}

/// Notifies of what was done.
async fn notify_end(
    known: &KnownBatchRun,
    (notify_options, outcome): (&NotifyOptions, &ContinuedRunOutcome),
    control: &RunControl,
) {
    match outcome {
        ContinuedRunOutcome::Ran(report) => {
            send_notification(notify_options, &RunNotification::of_report(report), control).await;
        }
        ContinuedRunOutcome::AllOk | ContinuedRunOutcome::SomeFailed => {
            send_notification(notify_options, &as_json(known, outcome), control).await;
        }
    }
}

/// Whether nothing can be sent again now.
fn is_end(outcome: &ContinuedRunOutcome) -> bool {
    match outcome {
        ContinuedRunOutcome::AllOk => true,
        ContinuedRunOutcome::SomeFailed => false,
        ContinuedRunOutcome::Ran(report) => {
            let is_stopped = matches!(report.stopped, Some(StopCause::Problem(_) | StopCause::Interrupted));
            is_stopped || matches!(report.exit, ExitCode::Ok | ExitCode::Submitted)
        }
    }
}

fn exit_of(outcome: &ContinuedRunOutcome) -> ExitCode {
    match outcome {
        ContinuedRunOutcome::AllOk => ExitCode::Ok,
        ContinuedRunOutcome::SomeFailed => ExitCode::RowsFailed,
        ContinuedRunOutcome::Ran(report) => report.exit,
    }
}

/// How many rows wait for jobs.
fn rows_out(outcome: &ContinuedRunOutcome) -> u64 {
    match outcome {
        ContinuedRunOutcome::AllOk | ContinuedRunOutcome::SomeFailed => 0,
        ContinuedRunOutcome::Ran(report) => report.parked_rows,
    }
}

fn as_json(known: &KnownBatchRun, outcome: &ContinuedRunOutcome) -> Value {
    let rows_out = rows_out(outcome);
    let status = match outcome {
        ContinuedRunOutcome::AllOk | ContinuedRunOutcome::SomeFailed => "finished",
        ContinuedRunOutcome::Ran(report) => report.summary.status,
    };
    json!({
        "run": known.run,
        "status": status,
        "rows_out": rows_out,
        "exit_code": exit_of(outcome) as u8,
        "output": known.output,
        "results_so_far": (rows_out > 0).then(|| known.results_so_far()),
    })
}

fn show(
    known: &KnownBatchRun,
    outcome: &ContinuedRunOutcome,
    shown: ShownResult,
) -> Result<ExitCode, Problem> {
    let exit = exit_of(outcome);
    match outcome {
        ContinuedRunOutcome::AllOk => printer::talk("every row has been collected already, and is ok"),
        ContinuedRunOutcome::SomeFailed => printer::talk(
            "every row has been collected already, and some failed: `rowmill batch retry` sends them again",
        ),
        ContinuedRunOutcome::Ran(report) => show_report(known, report),
    }
    let text = match shown {
        ShownResult::Path if rows_out(outcome) > 0 => known.results_so_far().display().to_string(),
        ShownResult::Path => known.output.display().to_string(),
        ShownResult::State => format!("Batch job status: {}", state_after(known)),
        ShownResult::Json => {
            // Plain data, so it always serializes to JSON.
            serde_json::to_string_pretty(&as_json(known, outcome)).unwrap_or_default()
        }
    };
    printer::report(&text)?;
    Ok(exit)
}

/// The state of the jobs as they are known now.
fn state_after(known: &KnownBatchRun) -> String {
    let now = known_runs().ok().and_then(|runs| runs.find(&known.run));
    now.as_ref().unwrap_or(known).overall_job_state().to_owned()
}

/// Prints the summary of what was done now.
fn show_report(known: &KnownBatchRun, report: &RunReport) {
    let columns = std::io::stderr().is_terminal().then(stderr_width);
    if let Ok(spec) = known.spec() {
        let context = SummaryContext { arguments: None, ..SummaryContext::of(&spec, columns) };
        printer::talk(&summary_text(report, &context));
    }
    if let Some(StopCause::Problem(problem)) = &report.stopped {
        printer::talk(&printer::problem_text(problem));
    }
    if report.exit == ExitCode::Submitted {
        let rows = count_phrase(report.parked_rows, "row");
        let so_far = known.results_so_far();
        let table = match so_far == known.output {
            true => String::new(),
            false => format!("; {} is written once no row is pending", known.output.display()),
        };
        printer::talk(&format!(
            "{rows} still pending; the results so far are in {}{table}",
            so_far.display()
        ));
    }
}
