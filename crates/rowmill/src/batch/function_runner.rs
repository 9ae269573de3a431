//! Runs functions of the program away from the thread that drives all calls.
//!
//! A function that computes for long would delay every other call on that thread. But handing each call
//! over to another thread costs more than a fast function takes. So a function that has proven to be
//! fast is called on the driving thread; as soon as it takes long there, its calls move to other
//! threads again.

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

use super::result_collector::lock_unpoisoned;

/// A call that never computes for longer than this without waiting counts as fast.
const BRIEF: Duration = Duration::from_micros(100);
/// How many calls in a row must be fast before calls run on the driving thread: the initial number, the
/// factor by which it grows each time this proves wrong, and its upper bound.
const ENOUGH: (u32, u32, u32) = (16, 8, 1 << 20);

/// How long the drop of a call waits for it to stop running. Fast calls end within this time, and those
/// that compute must not block the loop.
const GRACE: Duration = Duration::from_millis(100);

/// The result of a function that only computes.
pub(super) enum Computed<R> {
    /// It has finished.
    Now(R),
    /// It is still computing on another thread.
    Later(BoxFuture<'static, R>),
}

/// Calls functions of the program.
pub(super) struct FunctionRunner {
    queue: Mutex<CallQueue>,
    /// How many threads may run calls at once.
    most_threads: usize,
    /// How many calls in a row were fast, and how many are required.
    brief_calls: AtomicU32,
    enough: AtomicU32,
}

#[derive(Default)]
struct CallQueue {
    calls: VecDeque<Arc<dyn QueuedCall>>,
    threads: usize,
}

/// A call that is ready to continue.
trait QueuedCall: Send + Sync {
    /// Runs the call until it waits or ends.
    fn poll_until_blocked(self: Arc<Self>, runner: &Arc<FunctionRunner>);
}

impl Default for FunctionRunner {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            // At least two, so that one slow call does not delay all others.
            most_threads: std::thread::available_parallelism().map_or(1, usize::from).max(2),
            brief_calls: AtomicU32::new(0),
            enough: AtomicU32::new(ENOUGH.0),
        }
    }
}

impl FunctionRunner {
    /// Makes a call and waits for its end. Panics of the function are passed on to the caller.
    pub(super) async fn call<R, F>(self: &Arc<Self>, make: F) -> R
    where
        R: Send + 'static,
        F: FnOnce() -> BoxFuture<'static, R> + Send + 'static,
    {
        if self.is_trusted() {
            return self.call_here(make).await;
        }
        let state = CallState {
            phase: CallPhase::Queued(Box::pin(async { make().await })),
            is_woken: false,
            is_running: false,
            longest: Duration::ZERO,
            listener: Waker::noop().clone(),
        };
        let (runner, runtime) = (Arc::clone(self), Handle::current());
        let call =
            Arc::new(RunningCall { state: Mutex::new(state), paused: Condvar::new(), runner, runtime });
        self.queue(Arc::clone(&call) as _, &call.runtime);
        CallFuture(call).await
    }

    /// Calls a function that only computes and does not wait. Panics of the function are passed on to
    /// the caller, or to the task that awaits the result.
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

    /// Updates the count of fast calls from how long a call computed without waiting.
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

    /// Queues a call to be continued on another thread.
    fn queue(self: &Arc<Self>, call: Arc<dyn QueuedCall>, runtime: &Handle) {
        let mut queue = lock_unpoisoned(&self.queue);
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
                let mut queue = lock_unpoisoned(&self.queue);
                let next = queue.calls.pop_front();
                queue.threads -= usize::from(next.is_none());
                next
            };
            match next {
                Some(call) => call.poll_until_blocked(self),
                None => return,
            }
        }
    }
}

/// A call that is made away from the loop.
struct RunningCall<R> {
    state: Mutex<CallState<R>>,
    /// Notified when the call is no longer running.
    paused: Condvar,
    runner: Arc<FunctionRunner>,
    runtime: Handle,
}

struct CallState<R> {
    phase: CallPhase<R>,
    /// Whether the call was woken while it was running.
    is_woken: bool,
    /// Whether a thread is running it, even if its result is no longer wanted.
    is_running: bool,
    /// The longest time for which it computed without waiting.
    longest: Duration,
    /// Woken when the call ends.
    listener: Waker,
}

enum CallPhase<R> {
    Queued(BoxFuture<'static, R>),
    Running,
    /// It waits for something of its own.
    Waiting(BoxFuture<'static, R>),
    Ended(Result<R, Box<dyn Any + Send>>),
    /// Its result is no longer wanted.
    GivenUp,
}

impl<R: Send + 'static> QueuedCall for RunningCall<R> {
    fn poll_until_blocked(self: Arc<Self>, runner: &Arc<FunctionRunner>) {
        let mut future = {
            let mut state = lock_unpoisoned(&self.state);
            match std::mem::replace(&mut state.phase, CallPhase::Running) {
                CallPhase::Queued(future) => {
                    state.is_running = true;
                    future
                }
                other => {
                    state.phase = other;
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
                // The end is reported only after everything that the call held has been dropped.
                drop(future);
                runner.judge(took.max(lock_unpoisoned(&self.state).longest));
                self.end(Ok(done));
            }
            Err(panic) => {
                drop(future);
                self.end(Err(panic));
            }
        }
    }
}

impl<R: Send + 'static> RunningCall<R> {
    /// Waits for what the call waits for, unless that is there already.
    fn wait_on(self: &Arc<Self>, future: BoxFuture<'static, R>, took: Duration) {
        let mut state = lock_unpoisoned(&self.state);
        if matches!(state.phase, CallPhase::GivenUp) {
            drop(state);
            drop(future);
            return self.pause(&mut lock_unpoisoned(&self.state));
        }
        state.longest = state.longest.max(took);
        let is_woken = std::mem::take(&mut state.is_woken);
        state.phase = if is_woken { CallPhase::Queued(future) } else { CallPhase::Waiting(future) };
        self.pause(&mut state);
        drop(state);
        if is_woken {
            self.runner.queue(Arc::clone(self) as _, &self.runtime);
        }
    }

    fn end(&self, ended: Result<R, Box<dyn Any + Send>>) {
        let mut state = lock_unpoisoned(&self.state);
        if matches!(state.phase, CallPhase::GivenUp) {
            drop(state);
            drop(ended);
            return self.pause(&mut lock_unpoisoned(&self.state));
        }
        state.phase = CallPhase::Ended(ended);
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

impl<R: Send + 'static> Wake for RunningCall<R> {
    fn wake(self: Arc<Self>) {
        let mut state = lock_unpoisoned(&self.state);
        match std::mem::replace(&mut state.phase, CallPhase::Running) {
            CallPhase::Waiting(future) => {
                state.phase = CallPhase::Queued(future);
                drop(state);
                self.runner.queue(Arc::clone(&self) as _, &self.runtime);
            }
            phase => {
                state.is_woken = matches!(phase, CallPhase::Running);
                state.phase = phase;
            }
        }
    }
}

/// Waits for the end of a call. Dropping it abandons the call, which stops as early as it can.
struct CallFuture<R>(Arc<RunningCall<R>>);

impl<R> Future for CallFuture<R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let mut state = lock_unpoisoned(&self.0.state);
        match std::mem::replace(&mut state.phase, CallPhase::GivenUp) {
            CallPhase::Ended(Ok(done)) => Poll::Ready(done),
            CallPhase::Ended(Err(panic)) => {
                drop(state);
                resume_unwind(panic)
            }
            phase => {
                state.phase = phase;
                state.listener.clone_from(context.waker());
                Poll::Pending
            }
        }
    }
}

impl<R> Drop for CallFuture<R> {
    fn drop(&mut self) {
        let mut state = lock_unpoisoned(&self.0.state);
        let phase = std::mem::replace(&mut state.phase, CallPhase::GivenUp);
        if matches!(phase, CallPhase::Running) {
            let paused = self.0.paused.wait_timeout_while(state, GRACE, |state| state.is_running);
            drop(paused.unwrap_or_else(PoisonError::into_inner));
        } else {
            // Dropped without the lock, because the program's own code runs then.
            drop(state);
            drop(phase);
        }
    }
}

#[cfg(test)]
#[path = "function_runner_tests.rs"]
mod tests;
