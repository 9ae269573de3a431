//! The thread that makes the results of jobs when they are due.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::store::StoreState;
use crate::simulator_state::{SimulatorState, server_time};

impl SimulatorState {
    /// Tells the thread that jobs have changed; the first job starts it.
    pub(crate) fn wake_batch_worker(self: &Arc<Self>) {
        let store = &self.batches;
        let mut worker = store.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.is_none() {
            let state = Arc::clone(self);
            let thread = std::thread::Builder::new().name("simulator jobs".into());
            // Without a thread, the jobs are never finished, which a client sees.
            *worker = thread.spawn(move || state.make_results_until_stopped()).ok();
        }
        drop(worker);
        store.changed.notify_all();
    }

    /// Ends the thread, after the row that it is answering.
    pub(crate) fn stop_batch_worker(&self) {
        self.batches.is_stopping.store(true, Ordering::Release);
        // Under the lock, so that the thread is either waiting or sees the flag before it does.
        drop(self.batches.lock());
        self.batches.changed.notify_all();
        let worker = self.batches.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            let joined = worker.join();
            debug_assert!(joined.is_ok() || std::thread::panicking(), "the thread of the jobs panicked");
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.batches.is_stopping.load(Ordering::Acquire)
    }

    fn make_results_until_stopped(self: Arc<Self>) {
        let store = &self.batches;
        while !self.is_stopping() {
            let mut held = store.lock();
            let now = held.now();
            let due = held.jobs.iter().find(|job| job.is_due(now)).map(|job| job.number);
            if let Some(number) = due {
                drop(held);
                self.settle_job(number);
                store.changed.notify_all();
                continue;
            }
            if self.is_stopping() {
                return;
            }
            match next_end(&held) {
                Some(wait) => {
                    drop(store.changed.wait_timeout(held, wait).unwrap_or_else(PoisonError::into_inner));
                }
                None => {
                    held = store.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
                    drop(held);
                }
            }
        }
    }

    /// Waits until all results that are due have been made.
    pub(crate) fn wait_for_due_jobs(self: &Arc<Self>) {
        if self.batches.lock().jobs.is_empty() {
            return;
        }
        self.wake_batch_worker();
        let mut held = self.batches.lock();
        while held.jobs.iter().any(|job| job.is_due(held.now())) && !self.is_stopping() {
            held = self.batches.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Moves the clock of the jobs on.
    pub(crate) fn advance_job_clock(self: &Arc<Self>, by: Duration) {
        self.batches.lock().clock.advance(by);
        self.wait_for_due_jobs();
    }

    /// Lets all jobs end now.
    pub(crate) fn finish_jobs(self: &Arc<Self>) {
        let mut held = self.batches.lock();
        let now = held.now();
        for job in &mut held.jobs {
            job.timeline.finished.get_or_insert(now);
        }
        drop(held);
        self.wait_for_due_jobs();
    }

    pub(crate) fn stop_job_clock(&self) {
        self.batches.lock().clock.hold(server_time());
    }

    pub(crate) fn restart_job_clock(self: &Arc<Self>) {
        self.batches.lock().clock.release(server_time());
        self.batches.changed.notify_all();
    }
}

/// The real time until the next job ends, if one will without a change.
fn next_end(held: &StoreState) -> Option<Duration> {
    let now = held.now();
    let open = held.jobs.iter().filter(|job| job.outcome.is_none());
    let ends = open.map(|job| job.timeline.end().1).filter(|end| *end > now).min()?;
    held.clock.wait_until(ends, server_time())
}
