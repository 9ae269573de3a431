//! Running checks so that a panic or a hang of the implementation is a deviation.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};

/// How long one check may take. No implementation is that slow; what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long something may take to begin or to end before it counts as not doing so.
const SETTLING: Duration = Duration::from_secs(20);
/// How often a count of the implementation's author is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// What one check found: nothing, or how the contract is broken.
pub(super) type Checked = Result<(), String>;

/// The deviations of one suite, found check by check.
#[derive(Debug, Default)]
pub(super) struct Suite {
    deviations: Vec<String>,
}

impl Suite {
    /// Makes a check of blocking code. `doing` begins the sentence of a deviation.
    pub(super) fn check(&mut self, doing: &str, check: impl FnOnce() -> Checked) {
        let checked = catch_unwind(AssertUnwindSafe(check));
        self.note(doing, checked.unwrap_or_else(|panic| Err(told(&*panic))));
    }

    /// Makes a check that waits.
    pub(super) async fn wait_for(&mut self, doing: &str, check: impl Future<Output = Checked>) {
        let guarded = Box::pin(AssertUnwindSafe(check).catch_unwind());
        let checked = match tokio::time::timeout(PATIENCE, guarded).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(panic)) => Err(told(&*panic)),
            Err(_) => Err(format!("it did not come back within {} seconds", PATIENCE.as_secs())),
        };
        self.note(doing, checked);
    }

    fn note(&mut self, doing: &str, checked: Checked) {
        if let Err(what) = checked {
            self.deviations.push(format!("{doing}: {what}"));
        }
    }

    /// Everything that was found.
    pub(super) fn deviations(self) -> Vec<String> {
        self.deviations
    }
}

/// A deviation unless the promise is kept.
pub(super) fn require(kept: bool, deviation: impl FnOnce() -> String) -> Checked {
    if kept { Ok(()) } else { Err(deviation()) }
}

fn told(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a text"))
}

/// What the author of an implementation gives to show how many calls are under way.
pub(super) type UnderWay<'a> = Option<Box<dyn Fn() -> usize + Send + Sync + 'a>>;

/// Gives up a call: once it is seen under way, or else after its first step.
///
/// A call that is over before that has nothing to give up, which is no deviation.
pub(super) async fn give_up<'c, T>(
    start: impl FnOnce() -> BoxFuture<'c, T>,
    under_way: &UnderWay<'_>,
) -> Checked {
    let Some(count) = under_way else {
        let mut call = start();
        drop(futures_util::poll!(&mut call));
        return Ok(());
    };
    require(settled(|| count() == 0).await, || "calls from before are still under way".to_owned())?;
    match select(start(), Box::pin(settled(|| count() > 0))).await {
        Either::Left(_) => return Ok(()),
        Either::Right((began, call)) => {
            drop(call);
            require(began, || "it is not seen under way".to_owned())?;
        }
    }
    require(settled(|| count() == 0).await, || "it goes on although its future was dropped".to_owned())
}

/// Waits until something is so; `false` where it does not come to that.
async fn settled(is_so: impl Fn() -> bool) -> bool {
    let wait = async {
        // The count belongs to somebody else and cannot wake anybody, so it is looked at.
        while !is_so() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(SETTLING, wait).await.is_ok()
}
