//! Tool hosts that violate their contract.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_testkit::conformance::{AfterRelease, CountingTool, ToolCase, ToolFacts, check_tool_host};
use rowmill_types::ToolOutput;
use serde_json::{Value, json};

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    GivesNothing,
    AlwaysFails,
    FailureIsNoOutput,
    FailureIsSuccess,
    TakesAnyTool,
    UnknownMayHaveRun,
    MixesUp,
    SharesState,
    Forgets,
    Disturbs,
    KeepsReleased,
    ReleasesAll,
    IgnoresTime,
    LateIsSuccess,
    LateNeverRan,
    RunsOn,
    BreaksWhenDropped,
    PanicsAtUnseen,
    GoneWhenReleased,
    CloseHangs,
    ClosesOnce,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<u64, u64>,
    all: u64,
    last: String,
    released: Vec<u64>,
}

#[derive(Debug)]
struct Broken {
    manner: Manner,
    state: Mutex<State>,
    under_way: AtomicUsize,
    is_broken: AtomicBool,
    closed: AtomicUsize,
}

struct Counted<'h>(&'h Broken);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.is_broken.store(self.0.manner == Manner::BreaksWhenDropped, Ordering::SeqCst);
        if self.0.manner != Manner::RunsOn {
            self.0.under_way.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The only function of these hosts that creates a failure.
fn failure<T>(maybe_ran: bool) -> Result<T, ToolFailure> {
    Err(ToolFailure { message: "nothing came".to_owned(), may_have_run: maybe_ran })
}

impl Broken {
    async fn answer(&self, request: ToolRequest<'_>) -> Result<ToolOutput, ToolFailure> {
        let gone = |state: &State| state.released.iter().filter(|row| **row == request.row).count() > 1;
        if self.is_broken.load(Ordering::SeqCst)
            || self.manner == Manner::GivesNothing
            || (self.manner == Manner::GoneWhenReleased && gone(&self.state.lock().unwrap()))
        {
            return failure(false);
        }
        match (request.tool, self.manner) {
            (_, Manner::AlwaysFails) | ("fail", Manner::Right) => Ok(ToolOutput::error("no")),
            ("fail", Manner::FailureIsNoOutput) => failure(true),
            ("fail", Manner::FailureIsSuccess) => Ok(ToolOutput::from_text("no")),
            ("fail", _) => Ok(ToolOutput::error("no")),
            ("echo", _) => Ok(ToolOutput::from_text(self.echo(request.arguments).await)),
            ("count", _) => Ok(ToolOutput::from_text(self.count(request.row).to_string())),
            ("hang", _) => self.hang(request.timeout).await,
            (_, Manner::TakesAnyTool) => Ok(ToolOutput::from_text("gladly")),
            (_, Manner::UnknownMayHaveRun) => failure(true),
            _ => failure(false),
        }
    }

    async fn echo(&self, arguments: &str) -> String {
        self.state.lock().unwrap().last = arguments.to_owned();
        tokio::task::yield_now().await;
        if self.manner == Manner::MixesUp {
            return self.state.lock().unwrap().last.clone();
        }
        arguments.to_owned()
    }

    fn count(&self, row: u64) -> u64 {
        let mut state = self.state.lock().unwrap();
        state.all += 1;
        let all = state.all;
        let of_row = state.counts.entry(row).or_default();
        *of_row += 1;
        match self.manner {
            Manner::SharesState => all,
            Manner::Forgets => 1,
            Manner::Disturbs if *of_row > 1 => all,
            _ => *of_row,
        }
    }

    async fn hang(&self, timeout: Option<Duration>) -> Result<ToolOutput, ToolFailure> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let _counted = timeout.is_none().then(|| Counted(self));
        let timeout = timeout.filter(|_| self.manner != Manner::IgnoresTime);
        tokio::time::sleep(timeout.unwrap_or(Duration::from_secs(10_000))).await;
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        match self.manner {
            Manner::LateIsSuccess => Ok(ToolOutput::from_text("done")),
            Manner::LateNeverRan => failure(false),
            _ => failure(true),
        }
    }
}

impl ToolHost for Broken {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.answer(request))
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        let mut state = self.state.lock().unwrap();
        state.released.push(row);
        match self.manner {
            Manner::KeepsReleased => {}
            Manner::ReleasesAll => state.counts.clear(),
            _ => drop(state.counts.remove(&row)),
        }
        drop(state);
        assert!(self.manner != Manner::PanicsAtUnseen || row < 900_900, "who is that");
        Box::pin(std::future::ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let before = self.closed.fetch_add(1, Ordering::SeqCst);
            assert!(before == 0 || self.manner != Manner::ClosesOnce, "closed already");
            if self.manner == Manner::CloseHangs {
                std::future::pending::<()>().await;
            }
        })
    }
}

fn facts(host: &Broken) -> ToolFacts<'_> {
    let nothing: Value = json!({});
    ToolFacts {
        fails: Some(ToolCase::new("fail", &nothing)),
        counts: Some(CountingTool {
            case: ToolCase::new("count", &nothing),
            after_release: AfterRelease::Forgotten,
        }),
        echoes: Some(Box::new(|number| {
            (ToolCase::new("echo", &json!({"n": number})), format!("{{\"n\":{number}}}"))
        })),
        hangs: Some(ToolCase::new("hang", &nothing)),
        under_way: Some(Box::new(|| host.under_way.load(Ordering::SeqCst))),
        ..ToolFacts::of(ToolCase::new("echo", &nothing))
    }
}

#[tokio::test(start_paused = true)]
async fn every_promise_of_a_tool_host_is_checked() {
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::GivesNothing, "a call: `echo` gave nothing: nothing came"),
        (Manner::AlwaysFails, "a call: `echo` says that it failed: no"),
        (Manner::FailureIsNoOutput, "a tool that fails: it is reported as a `ToolFailure`, not as an output"),
        (Manner::FailureIsSuccess, "a tool that fails: its output is not marked as an error"),
        (Manner::TakesAnyTool, "a tool that does not exist: it gave an output instead of a `ToolFailure`"),
        (Manner::UnknownMayHaveRun, "a tool that does not exist: the failure says that it may have run"),
        (Manner::MixesUp, "calls at once: a call for `{\"n\":0}` got another answer: {\"n\":7}"),
        (Manner::SharesState, "a tool with state: a row begins with `1`, and another beside it with `2`"),
        (Manner::Forgets, "a tool with state: it forgets between two calls of a row"),
        (Manner::Disturbs, "a tool with state: rows disturb each other: `3` and `4`"),
        (Manner::KeepsReleased, "a tool with state: a row that was released goes on with `3`, not `1`"),
        (Manner::ReleasesAll, "a tool with state: the end of a row took the state of another one"),
        (Manner::IgnoresTime, "a tool that takes too long: it did not come back"),
        (Manner::LateIsSuccess, "a tool that takes too long: its output is not marked as an error: done"),
        (Manner::LateNeverRan, "a tool that takes too long: the failure says that it cannot have run"),
        (Manner::RunsOn, "a call that is given up: it goes on although its future was dropped"),
        (Manner::BreaksWhenDropped, "a call after one was given up: `echo` gave nothing"),
        (Manner::PanicsAtUnseen, "the end of rows: it panicked: who is that"),
        (
            Manner::GoneWhenReleased,
            "the end of rows: a row that was released calls again: `echo` gave nothing",
        ),
        (Manner::CloseHangs, "closing the host for the first time: it did not come back"),
        (Manner::ClosesOnce, "closing the host for the second time: it panicked: closed already"),
    ] {
        let host = Broken {
            manner,
            state: Mutex::default(),
            under_way: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            closed: AtomicUsize::new(0),
        };
        assert_reported(&manner, &check_tool_host(&host, &facts(&host)).await, expected);
    }
}
