//! Runs checks so that a panic or a hang of the implementation is reported as a violation.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};

/// The timeout of one check. No implementation is that slow; what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for something to start or end before it counts as not doing so.
const SETTLING: Duration = Duration::from_secs(20);
/// The interval at which a count of the implementation's author is checked.
const LOOK: Duration = Duration::from_millis(2);

/// The result of one check: success, or how the contract is violated.
pub(super) type CheckResult = Result<(), String>;

/// The violations found by one suite.
#[derive(Debug, Default)]
pub(super) struct CheckSuite {
    deviations: Vec<String>,
}

impl CheckSuite {
    /// Runs a check of blocking code. `doing` is the start of the violation's sentence.
    pub(super) fn check(&mut self, doing: &str, check: impl FnOnce() -> CheckResult) {
        let checked = catch_unwind(AssertUnwindSafe(check));
        self.note(doing, checked.unwrap_or_else(|panic| Err(panic_text(&*panic))));
    }

    /// Runs an asynchronous check.
    pub(super) async fn wait_for(&mut self, doing: &str, check: impl Future<Output = CheckResult>) {
        let guarded = Box::pin(AssertUnwindSafe(check).catch_unwind());
        let checked = match tokio::time::timeout(PATIENCE, guarded).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(panic)) => Err(panic_text(&*panic)),
            Err(_) => Err(format!("it did not come back within {} seconds", PATIENCE.as_secs())),
        };
        self.note(doing, checked);
    }

    fn note(&mut self, doing: &str, checked: CheckResult) {
        if let Err(what) = checked {
            self.deviations.push(format!("{doing}: {what}"));
        }
    }

    /// All violations that were found.
    pub(super) fn deviations(self) -> Vec<String> {
        self.deviations
    }
}

/// Returns a violation unless the condition holds.
pub(super) fn ensure(kept: bool, deviation: impl FnOnce() -> String) -> CheckResult {
    if kept { Ok(()) } else { Err(deviation()) }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a text"))
}

/// A count of running calls, provided by the author of an implementation.
pub(super) type CallCounterFn<'a> = Option<Box<dyn Fn() -> usize + Send + Sync + 'a>>;

/// Drops a call: once the count shows it as running, or else after its first poll.
///
/// If a call ends before that, there is nothing to drop, which is not a violation.
pub(super) async fn drop_call_and_check<'c, T>(
    start: impl FnOnce() -> BoxFuture<'c, T>,
    under_way: &CallCounterFn<'_>,
) -> CheckResult {
    let Some(count) = under_way else {
        let mut call = start();
        drop(futures_util::poll!(&mut call));
        return Ok(());
    };
    ensure(settled(|| count() == 0).await, || "calls from before are still under way".to_owned())?;
    match select(start(), Box::pin(settled(|| count() > 0))).await {
        Either::Left(_) => return Ok(()),
        Either::Right((began, call)) => {
            drop(call);
            ensure(began, || "it is not seen under way".to_owned())?;
        }
    }
    ensure(settled(|| count() == 0).await, || "it goes on although its future was dropped".to_owned())
}

/// Waits until a condition holds; `false` if it does not within the timeout.
async fn settled(is_so: impl Fn() -> bool) -> bool {
    let wait = async {
        // The count belongs to the author and cannot wake this task, so it is polled.
        while !is_so() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(SETTLING, wait).await.is_ok()
}
