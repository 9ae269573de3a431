//! A running simulator.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::batch::{BatchRequestKind, HoldMoment};
use crate::limits::SimulatedLimits;
use crate::outage::OutageKind;
use crate::recorded_call::RecordedCall;
use crate::recorder::RecordedRequest;
use crate::script::SimulatorScript;
use crate::server;
use crate::simulator_state::{SimulatorState, server_time};
use crate::stats::SimulatorStats;

/// A provider on a loopback port, with its own thread. Dropping it closes every connection and joins the
/// thread.
///
/// ```
/// # use rowmill_simulator::{SimulatorScript, Simulator};
/// let simulator = Simulator::start_blocking(SimulatorScript::new().key("k"));
/// assert!(simulator.url().starts_with("http://127.0.0.1:"));
/// assert_eq!(simulator.stats().requests, 0);
/// ```
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    shared: Arc<SimulatorState>,
    pings: UnboundedSender<mpsc::SyncSender<()>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Simulator {
    /// Starts a simulator from asynchronous code.
    ///
    /// # Panics
    ///
    /// No loopback socket is available, without which no test can continue.
    #[expect(clippy::unused_async, reason = "callers await a start, whatever it does inside")]
    pub async fn start(script: SimulatorScript) -> Self {
        Self::start_blocking(script)
    }

    /// Starts a simulator from blocking code.
    ///
    /// # Panics
    ///
    /// No loopback socket is available, without which no test can continue.
    #[must_use]
    #[expect(clippy::panic, reason = "a test that cannot have its provider must fail")]
    pub fn start_blocking(script: SimulatorScript) -> Self {
        Self::try_start(script).unwrap_or_else(|error| panic!("the simulator cannot start: {error}"))
    }

    /// Starts a simulator, or returns why it cannot.
    ///
    /// # Errors
    ///
    /// The port is taken, or the system provides no thread or socket.
    pub fn try_start(script: SimulatorScript) -> io::Result<Self> {
        let shared = Arc::new(SimulatorState::new(script));
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = mpsc::sync_channel(1);
        // Unbounded, because each sender waits for its answer before it sends again.
        let (pings, pinged) = unbounded_channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("simulator".into()).spawn(move || {
            let ran = run(served, stopped, pinged, |address| ready.send(Ok(address)).is_ok());
            if let Err(error) = ran {
                // Once started, nothing waits for this any more.
                drop(ready.send(Err(error)));
            }
        })?;
        let address = started.recv().map_err(io::Error::other)??;
        Ok(Self { address, shared, pings, stop: Some(stop), thread: Some(thread) })
    }

    /// Its URL, such as `http://127.0.0.1:49152`, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The statistics so far. They include everything that a client has received.
    #[must_use]
    pub fn stats(&self) -> SimulatorStats {
        // A client can receive an answer before the server's thread has counted it. That thread counts before
        // it handles anything else, so a message is sent to it and answered first.
        let (pong, ponged) = mpsc::sync_channel(1);
        if self.pings.send(pong).is_ok() {
            // A server that is gone counts nothing more, so there is nothing to wait for.
            ponged.recv().ok();
        }
        self.shared.stats()
    }

    /// The last requests, oldest first, without those for `/stats`.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.recorder.requests()
    }

    /// The last calls with their files, oldest first. Calls that were rejected because of their content are
    /// not included.
    #[must_use]
    pub fn calls(&self) -> Vec<RecordedCall> {
        self.shared.recorder.calls()
    }

    /// Forgets all uploaded files and the files with results of batch jobs, as if they had expired.
    pub fn expire_files(&self) {
        self.shared.stored.clear();
        self.shared.batches.lock().files.clear();
    }

    /// Moves the clock of batch jobs on, and waits until the results that are due then have been made.
    pub fn advance_job_clock(&self, by: Duration) {
        self.shared.advance_job_clock(by);
    }

    /// Lets all batch jobs that exist end now with all of their rows, and waits until their results have been
    /// made. Jobs that are being cancelled or have invalid rows end as such.
    pub fn finish_jobs(&self) {
        self.shared.finish_jobs();
    }

    /// Stops the clock of batch jobs, so that only [`Simulator::advance_job_clock`] moves it.
    pub fn stop_job_clock(&self) {
        self.shared.stop_job_clock();
    }

    /// Lets that clock run again.
    pub fn restart_job_clock(&self) {
        self.shared.restart_job_clock();
    }

    /// Holds the request of this kind that comes after `before` others of its kind from now on, until
    /// [`Simulator::release_batch_requests`]. The statistics count requests that are held.
    pub fn hold_batch_request(&self, kind: BatchRequestKind, moment: HoldMoment, before: u64) {
        self.shared.batches.holds.plan(kind, moment, before);
    }

    /// Releases all held requests of batch APIs, and plans to hold no others.
    pub fn release_batch_requests(&self) {
        self.shared.batches.holds.release();
    }

    /// Releases every held answer and all later ones.
    pub fn release(&self) {
        self.shared.gate.release();
    }

    /// Releases the next `calls` held calls, in order of arrival.
    pub fn release_some(&self, calls: u64) {
        self.shared.gate.release_some(calls);
    }

    /// Releases `bytes` more bytes of dripping answers.
    pub fn release_bytes(&self, bytes: usize) {
        self.shared.gate.allow_bytes(bytes);
    }

    /// Changes the limits from now on. The levels of buckets stay, up to the new capacity.
    pub fn set_limits(&self, limits: SimulatedLimits) {
        self.shared.conditions().set_limits(limits, server_time());
    }

    /// Starts an outage.
    pub fn begin_outage(&self, kind: OutageKind) {
        self.shared.conditions().begin_outage(kind);
        self.shared.outage_changed.notify_one();
    }

    /// Ends the outage.
    pub fn end_outage(&self) {
        self.shared.conditions().end_outage();
        self.shared.outage_changed.notify_one();
    }

    /// Exhausts the quota.
    pub fn exhaust_quota(&self) {
        self.shared.conditions().quota.exhaust();
    }

    /// Renews the whole quota.
    pub fn renew_quota(&self) {
        self.shared.conditions().quota.renew();
    }

    /// Waits until the statistics satisfy `reached`.
    pub async fn wait_until(&self, reached: impl Fn(&SimulatorStats) -> bool) -> SimulatorStats {
        let stats = self.shared.recorder.wait_until(reached).await;
        self.shared.with_allowed(stats)
    }

    /// Waits until the statistics satisfy `reached`, in blocking code.
    pub fn wait_until_blocking(&self, reached: impl Fn(&SimulatorStats) -> bool) -> SimulatorStats {
        let stats = self.shared.recorder.wait_until_blocking(reached);
        self.shared.with_allowed(stats)
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.shared.stop_batch_worker();
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            debug_assert!(joined.is_ok() || std::thread::panicking(), "the simulator's thread panicked");
        }
    }
}

/// Listens and serves until `stopped` ends. All tasks end with the runtime.
fn run(
    shared: Arc<SimulatorState>,
    stopped: oneshot::Receiver<()>,
    mut pinged: UnboundedReceiver<mpsc::SyncSender<()>>,
    ready: impl FnOnce(SocketAddr) -> bool,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = server::listen(SocketAddr::from((shared.script.host, shared.script.port)))?;
        let address = listener.local_addr()?;
        if !ready(address) {
            return Err(io::Error::other("nothing is waiting for the simulator"));
        }
        let pongs = async {
            while let Some(pong) = pinged.recv().await {
                // The receiver may be gone.
                pong.send(()).ok();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = stopped => {}
            () = pongs => {}
            () = server::serve(listener, address, shared) => {}
        }
        Ok(())
    })
}
