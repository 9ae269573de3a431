//! Functions of the program, away from the thread that drives all calls.
//!
//! A function that computes for long would hold up every other call there. To hand each call over costs
//! more than a brief function takes, though, so a function that has shown to be brief is called beside
//! the work on other items; as soon as it takes long there, its calls go away again.

use std::any::Any;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use super::collect::locked;

/// A call that never computes for longer than this without waiting is brief.
const BRIEF: Duration = Duration::from_micros(100);
/// How many calls in a row have to be brief before others may be made beside the work on items. Each
/// time that proves wrong, so many times as many are needed, up to the last number.
const ENOUGH: (u32, u32, u32) = (16, 8, 1 << 20);

/// How long whoever gives a call up waits until nothing of it runs: brief ones are through by then, and
/// those that compute must not hold up the loop.
const GRACE: Duration = Duration::from_millis(100);

/// What a function gives that only computes.
pub(super) enum Computed<R> {
    /// It has given it.
    Now(R),
    /// It computes on another thread.
    Later(BoxFuture<'static, R>),
}

/// Calls functions of the program.
pub(super) struct FunctionRunner {
    queue: Mutex<Queue>,
    /// How many threads may be at work at once.
    most_threads: usize,
    /// How many calls in a row were brief, and how many have to be.
    brief_calls: AtomicU32,
    enough: AtomicU32,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Arc<dyn QueuedCall>>,
    threads: usize,
}

/// A call that is ready to continue.
trait QueuedCall: Send + Sync {
    /// Continues it until it waits or ends.
    fn go_on(self: Arc<Self>, runner: &Arc<FunctionRunner>);
}

impl Default for FunctionRunner {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            // Two at least, so that one that takes long does not hold up all others.
            most_threads: std::thread::available_parallelism().map_or(1, usize::from).max(2),
            brief_calls: AtomicU32::new(0),
            enough: AtomicU32::new(ENOUGH.0),
        }
    }
}

impl FunctionRunner {
    /// Makes a call and waits for its end. Panics of the function are panics of this.
    pub(super) async fn call<R, F>(self: &Arc<Self>, make: F) -> R
    where
        R: Send + 'static,
        F: FnOnce() -> BoxFuture<'static, R> + Send + 'static,
    {
        if self.is_trusted() {
            return self.call_here(make).await;
        }
        let state = CallState {
            stage: Stage::Queued(Box::pin(async { make().await })),
            is_woken: false,
            is_running: false,
            longest: Duration::ZERO,
            listener: Waker::noop().clone(),
        };
        let (runner, runtime) = (Arc::clone(self), Handle::current());
        let call = Arc::new(Call { state: Mutex::new(state), paused: Condvar::new(), runner, runtime });
        self.queue(Arc::clone(&call) as _, &call.runtime);
        CallEnd(call).await
    }

    /// Calls a function that does not wait for anything but its own computing. Panics of the function are
    /// panics of this, or of whoever waits for its end.
    pub(super) fn compute<R, F>(self: &Arc<Self>, function: F) -> Computed<R>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        if !self.is_trusted() {
            let runner = Arc::clone(self);
            return Computed::Later(Box::pin(async move {
                runner.call(move || Box::pin(async move { function() })).await
            }));
        }
        let began = Instant::now();
        let done = function();
        self.judge(began.elapsed());
        Computed::Now(done)
    }

    fn is_trusted(&self) -> bool {
        self.brief_calls.load(Ordering::Relaxed) >= self.enough.load(Ordering::Relaxed)
    }

    /// Makes a call on this thread.
    async fn call_here<R>(&self, make: impl FnOnce() -> BoxFuture<'static, R>) -> R {
        let mut longest = Duration::ZERO;
        let mut calling = pin!(async { make().await });
        let done = poll_fn(|context| {
            let began = Instant::now();
            let polled = calling.as_mut().poll(context);
            longest = longest.max(began.elapsed());
            polled
        });
        let done = done.await;
        self.judge(longest);
        done
    }

    /// Takes in for how long a call computed without waiting.
    fn judge(&self, longest: Duration) {
        let is_trusted = self.is_trusted();
        if longest > BRIEF {
            self.brief_calls.store(0, Ordering::Relaxed);
        } else if !is_trusted {
            self.brief_calls.fetch_add(1, Ordering::Relaxed);
        }
        if longest > BRIEF && is_trusted {
            let enough = self.enough.load(Ordering::Relaxed).saturating_mul(ENOUGH.1).min(ENOUGH.2);
            self.enough.store(enough, Ordering::Relaxed);
        }
    }

    /// Has a thread continue a call.
    fn queue(self: &Arc<Self>, call: Arc<dyn QueuedCall>, runtime: &Handle) {
        let mut queue = locked(&self.queue);
        queue.calls.push_back(call);
        if queue.threads < self.most_threads {
            queue.threads += 1;
            drop(queue);
            let runner = Arc::clone(self);
            drop(runtime.spawn_blocking(move || runner.empty_queue()));
        }
    }

    fn empty_queue(self: &Arc<Self>) {
        loop {
            let next = {
                let mut queue = locked(&self.queue);
                let next = queue.calls.pop_front();
                queue.threads -= usize::from(next.is_none());
                next
            };
            match next {
                Some(call) => call.go_on(self),
                None => return,
            }
        }
    }
}

/// A call that is made away from the loop.
struct Call<R> {
    state: Mutex<CallState<R>>,
    /// Told when it does not run any more.
    paused: Condvar,
    runner: Arc<FunctionRunner>,
    runtime: Handle,
}

struct CallState<R> {
    stage: Stage<R>,
    /// Whether what it waited for came while it was running.
    is_woken: bool,
    /// Whether a thread is at it, wanted or not.
    is_running: bool,
    /// For how long it computed without waiting, at most.
    longest: Duration,
    /// Who is told of its end.
    listener: Waker,
}

enum Stage<R> {
    Queued(BoxFuture<'static, R>),
    Running,
    /// It waits for something of its own.
    Waiting(BoxFuture<'static, R>),
    Ended(Result<R, Box<dyn Any + Send>>),
    /// Nobody wants to know of it any more.
    GivenUp,
}

impl<R: Send + 'static> QueuedCall for Call<R> {
    fn go_on(self: Arc<Self>, runner: &Arc<FunctionRunner>) {
        let mut future = {
            let mut state = locked(&self.state);
            match std::mem::replace(&mut state.stage, Stage::Running) {
                Stage::Queued(future) => {
                    state.is_running = true;
                    future
                }
                other => {
                    state.stage = other;
                    return;
                }
            }
        };
        let waker = Waker::from(Arc::clone(&self));
        let began = Instant::now();
        let polled =
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
        let took = began.elapsed();
        match polled {
            Ok(Poll::Pending) => self.wait_on(future, took),
            Ok(Poll::Ready(done)) => {
                // Nobody hears of the end before everything that the call held is gone.
                drop(future);
                runner.judge(took.max(locked(&self.state).longest));
                self.end(Ok(done));
            }
            Err(panic) => {
                drop(future);
                self.end(Err(panic));
            }
        }
    }
}

impl<R: Send + 'static> Call<R> {
    /// Waits for what the call waits for, unless that is there already.
    fn wait_on(self: &Arc<Self>, future: BoxFuture<'static, R>, took: Duration) {
        let mut state = locked(&self.state);
        if matches!(state.stage, Stage::GivenUp) {
            drop(state);
            drop(future);
            return self.pause(&mut locked(&self.state));
        }
        state.longest = state.longest.max(took);
        let is_woken = std::mem::take(&mut state.is_woken);
        state.stage = if is_woken { Stage::Queued(future) } else { Stage::Waiting(future) };
        self.pause(&mut state);
        drop(state);
        if is_woken {
            self.runner.queue(Arc::clone(self) as _, &self.runtime);
        }
    }

    fn end(&self, ended: Result<R, Box<dyn Any + Send>>) {
        let mut state = locked(&self.state);
        if matches!(state.stage, Stage::GivenUp) {
            drop(state);
            drop(ended);
            return self.pause(&mut locked(&self.state));
        }
        state.stage = Stage::Ended(ended);
        self.pause(&mut state);
        let listener = state.listener.clone();
        drop(state);
        listener.wake();
    }

    fn pause(&self, state: &mut CallState<R>) {
        state.is_running = false;
        self.paused.notify_all();
    }
}

impl<R: Send + 'static> Wake for Call<R> {
    fn wake(self: Arc<Self>) {
        let mut state = locked(&self.state);
        match std::mem::replace(&mut state.stage, Stage::Running) {
            Stage::Waiting(future) => {
                state.stage = Stage::Queued(future);
                drop(state);
                self.runner.queue(Arc::clone(&self) as _, &self.runtime);
            }
            stage => {
                state.is_woken = matches!(stage, Stage::Running);
                state.stage = stage;
            }
        }
    }
}

/// Waits for the end of a call. Dropping it gives the call up: it goes no further than it must.
struct CallEnd<R>(Arc<Call<R>>);

impl<R> Future for CallEnd<R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let mut state = locked(&self.0.state);
        match std::mem::replace(&mut state.stage, Stage::GivenUp) {
            Stage::Ended(Ok(done)) => Poll::Ready(done),
            Stage::Ended(Err(panic)) => {
                drop(state);
                resume_unwind(panic)
            }
            stage => {
                state.stage = stage;
                state.listener.clone_from(context.waker());
                Poll::Pending
            }
        }
    }
}

impl<R> Drop for CallEnd<R> {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        let stage = std::mem::replace(&mut state.stage, Stage::GivenUp);
        if matches!(stage, Stage::Running) {
            let paused = self.0.paused.wait_timeout_while(state, GRACE, |state| state.is_running);
            drop(paused.unwrap_or_else(PoisonError::into_inner));
        } else {
            // Dropped without the lock, because the program's own code runs then.
            drop(state);
            drop(stage);
        }
    }
}

#[cfg(test)]
#[path = "function_runner_tests.rs"]
mod tests;
