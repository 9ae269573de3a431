//! The common parts of `run` and `plan`: a runtime, progress, and signals that stop the work.

use std::pin::pin;
use std::sync::Arc;

use rowmill::{Control, ExitCode, Limits, Problem, ProblemCode, Stop};

use crate::progress::Progress;
use crate::resolve::Show;
use crate::signals::{Asked, Signals};
use crate::surroundings::environment;
use crate::vocabulary::vocabulary;

/// Runs some work while showing progress and handling signals.
pub(crate) fn conduct<T>(
    show: Show,
    work: impl AsyncFnOnce(&Control) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let cannot =
        |error: std::io::Error| Problem::new(ProblemCode::Internal, "cannot start the runtime").cause(error);
    // One thread drives all calls: it is the cheapest per row, and a core of it is
    // enough for tens of thousands of rows a second.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let done = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(cannot)?;
        let progress = Progress::start(show);
        let control = Control {
            observer: progress.observer(),
            notice: Arc::new(progress.notice()),
            stop: Stop::default(),
            limits: Limits::default(),
            person: None,
            environment: environment().clone(),
            vocabulary: vocabulary(),
        };
        let outcome = {
            let talk = progress.talk();
            let mut work = pin!(work(&control));
            let mut asked = 0;
            loop {
                tokio::select! {
                    outcome = &mut work => break Some(outcome),
                    signal = signals.next() => {
                        asked += 1;
                        if stop(&control.stop, signal, asked, &talk) == Patience::Over {
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
enum Patience {
    Left,
    Over,
}

/// The first signal drains, the second aborts, the third exits. SIGTERM and SIGHUP only drain.
fn stop(stop: &Stop, signal: Asked, asked: u32, talk: &dyn Fn(&str)) -> Patience {
    match (signal, asked) {
        (Asked::Terminate, _) | (Asked::Interrupt, 1) => {
            talk(
                "stopping: finishing rows in progress, starting no others; press Ctrl-C again to abort them",
            );
            stop.drain();
        }
        (Asked::Interrupt, 2) => {
            talk("aborting: cancelling calls in flight; their rows are recorded with unknown outcome");
            stop.abort();
        }
        (Asked::Interrupt, _) => return Patience::Over,
    }
    Patience::Left
}

#[expect(clippy::exit, reason = "the third Ctrl-C means now")]
fn exit_now<T>() -> T {
    std::process::exit(ExitCode::Interrupted as i32)
}
