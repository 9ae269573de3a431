//! The common parts of `run` and `plan`: a runtime, progress, and signals that stop the work.

use std::pin::pin;
use std::sync::Arc;

use rowmill::{BatchLaneHandle, ExitCode, Problem, ProblemCode, RunControl, SharedLimits, StopHandle};

use crate::process_environment::process_environment;
use crate::progress::ProgressDisplay;
use crate::resolve::DisplayOptions;
use crate::signals::{SignalListener, StopSignal};
use crate::vocabulary::vocabulary;

/// Runs some work while showing progress and handling signals.
pub(crate) fn run_with_signals<T>(
    show: DisplayOptions,
    work: impl AsyncFnOnce(&RunControl) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let cannot =
        |error: std::io::Error| Problem::new(ProblemCode::Internal, "cannot start the runtime").cause(error);
    // One thread drives all calls: it is the cheapest per row, and a core of it is
    // enough for tens of thousands of rows a second.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let done = runtime.block_on(async {
        let mut signals = SignalListener::listen().map_err(cannot)?;
        let progress = ProgressDisplay::start(show);
        let control = RunControl {
            observer: progress.observer(),
            notice: Arc::new(progress.notice_printer()),
            stop: StopHandle::default(),
            limits: SharedLimits::default(),
            person: None,
            environment: process_environment().clone(),
            vocabulary: vocabulary(),
            lane: BatchLaneHandle::default(),
        };
        let outcome = {
            let (talk, stop_waiting_message) = (progress.line_printer(), progress.job_watcher());
            let mut work = pin!(work(&control));
            let mut asked = 0;
            loop {
                tokio::select! {
                    outcome = &mut work => break Some(outcome),
                    signal = signals.next() => {
                        asked += 1;
                        if let Some(text) = stop_waiting_message().filter(|_| asked == 1) {
                            talk(&text);
                            control.stop.drain();
                        } else if stop(&control.stop, signal, asked, &talk) == WaitForEnd::Over {
                            break None;
                        }
                    }
                }
            }
        };
        // The work was dropped, which ended the processes that it had started.
        let outcome = outcome.unwrap_or_else(exit_now);
        progress.finish();
        outcome
    });
    // A thread that still waits for standard input must not delay the exit.
    runtime.shutdown_background();
    done
}

/// Whether to wait for the end of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitForEnd {
    Left,
    Over,
}

/// The first signal drains, the second aborts, the third exits. SIGTERM and SIGHUP only drain.
fn stop(stop: &StopHandle, signal: StopSignal, asked: u32, talk: &dyn Fn(&str)) -> WaitForEnd {
    match (signal, asked) {
        (StopSignal::Terminate, _) | (StopSignal::Interrupt, 1) => {
            talk(
                "stopping: finishing rows in progress, starting no others; press Ctrl-C again to abort them",
            );
            stop.drain();
        }
        (StopSignal::Interrupt, 2) => {
            talk("aborting: cancelling calls in flight; their rows are recorded with unknown outcome");
            stop.abort();
        }
        (StopSignal::Interrupt, _) => return WaitForEnd::Over,
    }
    WaitForEnd::Left
}

#[expect(clippy::exit, reason = "the third Ctrl-C means now")]
fn exit_now<T>() -> T {
    std::process::exit(ExitCode::Interrupted as i32)
}
