//! Assigns Python processes to rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use rowmill_core::ports::ToolFailure;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::launch::{LaunchError, PythonLauncher};
use super::process::PythonProcess;
use super::wire::{PythonAnswer, PythonRequest};

/// How long the `on_shutdown` hooks of a process may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The processes of a run: each belongs to one row at a time, or to none.
#[derive(Debug)]
pub(super) struct ProcessPool {
    launcher: PythonLauncher,
    seats: Mutex<HashMap<u64, Arc<ProcessSeat>>>,
    idle: Mutex<Vec<PythonProcess>>,
    permits: Arc<Semaphore>,
    closed: watch::Sender<bool>,
    timeout: Option<Duration>,
}

/// The slot of a row. Its calls take turns, because a process does one thing at a time.
type ProcessSeat = tokio::sync::Mutex<HeldProcess>;

#[derive(Debug, Default)]
struct HeldProcess {
    permit: Option<OwnedSemaphorePermit>,
    worker: Option<PythonProcess>,
}

impl ProcessPool {
    /// A pool with one process.
    pub(super) fn new(
        launcher: PythonLauncher,
        first: PythonProcess,
        most: usize,
        timeout: Option<Duration>,
    ) -> Self {
        Self {
            launcher,
            seats: Mutex::default(),
            idle: Mutex::new(vec![first]),
            permits: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))),
            closed: watch::Sender::new(false),
            timeout,
        }
    }

    /// Sends a request to the process of a row. A process that gave no answer is killed, as is one whose
    /// future is dropped: there is no other way to stop it.
    pub(super) async fn ask(
        &self,
        row: u64,
        (ask, index): (PythonRequest, usize),
        body: &[u8],
        timeout: Option<Duration>,
    ) -> Result<PythonAnswer, ToolFailure> {
        let seat = Arc::clone(lock(&self.seats).entry(row).or_default());
        let mut held = seat.lock().await;
        let mut worker = self.worker(&mut held).await?;
        let mut closed = self.closed.subscribe();
        let answer = tokio::select! {
            biased;
            answer = in_time(timeout.or(self.timeout), worker.request(ask, index, body)) => answer,
            _ = closed.wait_for(|closed| *closed) => Err("the run ended".to_owned()),
        };
        match answer {
            Ok(answer) => {
                held.worker = Some(worker);
                Ok(answer)
            }
            Err(message) => Err(ToolFailure { message, may_have_run: true }),
        }
    }

    /// Prepares the process of a row. Rows wait for one in order of arrival, and keep it until they are
    /// released.
    pub(super) async fn ready(&self, row: u64) -> Result<(), ToolFailure> {
        let seat = Arc::clone(lock(&self.seats).entry(row).or_default());
        let mut held = seat.lock().await;
        held.worker = Some(self.worker(&mut held).await?);
        Ok(())
    }

    /// The process of a row: its own, one that is idle, or a new one.
    async fn worker(&self, held: &mut HeldProcess) -> Result<PythonProcess, ToolFailure> {
        let unasked = |message: String| ToolFailure { message, may_have_run: false };
        if held.permit.is_none() {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            held.permit = Some(permit.map_err(|_| unasked("the run has ended".to_owned()))?);
        }
        if *self.closed.borrow() {
            return Err(unasked("the run has ended".to_owned()));
        }
        let known = held.worker.take().and_then(PythonProcess::if_alive).or_else(|| self.idle_worker());
        if let Some(worker) = known {
            return Ok(worker);
        }
        let (worker, loaded) = self.launcher.launch().await.map_err(|error| {
            unasked(match error {
                LaunchError::NotStarted(error) => format!("cannot start Python: {error}"),
                LaunchError::Failed(message) => format!("cannot start Python: {message}"),
            })
        })?;
        match loaded.mistakes.into_iter().next() {
            None => Ok(worker),
            Some(mistake) => Err(unasked(format!("cannot start Python: {}", mistake.message))),
        }
    }

    fn idle_worker(&self) -> Option<PythonProcess> {
        let mut idle = lock(&self.idle);
        while let Some(worker) = idle.pop() {
            if let Some(worker) = worker.if_alive() {
                return Some(worker);
            }
        }
        None
    }

    /// Gives the process of a row back.
    pub(super) async fn release(&self, row: u64) {
        let seat = lock(&self.seats).remove(&row);
        if let Some(seat) = seat {
            let mut held = seat.lock().await;
            let worker = held.worker.take();
            // Before the permit is released: whoever gets it finds this process.
            lock(&self.idle).extend(worker);
            held.permit = None;
        }
    }

    /// Ends all processes.
    pub(super) async fn close(&self) {
        self.closed.send_replace(true);
        self.permits.close();
        let seats: Vec<_> = lock(&self.seats).drain().collect();
        let mut workers = std::mem::take(&mut *lock(&self.idle));
        for (_, seat) in seats {
            // A row that is still being worked on holds its process; it is simply killed.
            if let Ok(mut held) = seat.try_lock() {
                workers.extend(held.worker.take());
            }
        }
        join_all(workers.into_iter().map(|worker| worker.finish(SHUTDOWN_TIMEOUT))).await;
        self.launcher.reap_killed().await;
    }
}

async fn in_time(
    timeout: Option<Duration>,
    answer: impl Future<Output = Result<PythonAnswer, String>>,
) -> Result<PythonAnswer, String> {
    let Some(timeout) = timeout else { return answer.await };
    match tokio::time::timeout(timeout, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {} s", timeout.as_secs_f64())),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
