//! Processes in groups of their own, so that everything they start ends with them.

use std::collections::HashMap;
use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rowmill_types::is_open_file_limit;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, test_kill_process_group, waitid,
};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open};
#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};
use tokio::process::{Child, Command};

use crate::survivors::ProcessMark;

/// How often to check whether a process has ended, initially and at most, if the system sends no
/// notification.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// How long to wait until killed processes are gone.
const REAP_TIMEOUT: Duration = Duration::from_millis(300);

/// The error for a process that could not be started, with a hint if the cause is this machine's limit on
/// open files: a process needs three of them for its pipes.
fn with_remedy(error: io::Error) -> io::Error {
    match is_open_file_limit(&error) {
        true => {
            io::Error::new(error.kind(), "the open file limit is reached; raise it with `ulimit -n 1024`")
        }
        false => error,
    }
}

/// A process and everything that it started, in its group or in a session of its own. Dropping it kills all
/// of them.
///
/// The process is not reaped before its group has been killed: as long as it exists, at least as a zombie,
/// its number, which is also that of the group, is not reused.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    child: Option<Child>,
    leader: Option<Pid>,
    mark: Option<ProcessMark>,
    reaper: ProcessReaper,
}

impl ProcessGroup {
    /// Starts a process as the leader of a new group.
    pub(crate) fn start(command: &mut Command, reaper: &ProcessReaper) -> io::Result<Self> {
        let mark = ProcessMark::put_on(command);
        let child = command.process_group(0).kill_on_drop(true).spawn().map_err(with_remedy)?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        reaper.lock().living.extend(leader.map(|leader| (leader, mark.clone())));
        Ok(Self { child: Some(child), leader, mark: Some(mark), reaper: reaper.clone() })
    }

    /// The process, to take its pipes from.
    pub(crate) fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    /// Whether the process has ended by itself.
    pub(crate) fn has_exited(&mut self) -> bool {
        match self.leader {
            Some(leader) => has_exited(leader),
            None => self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None))),
        }
    }

    /// Waits until the process has ended, then kills what it left behind.
    pub(crate) async fn wait_for_end(&mut self) -> Option<ExitStatus> {
        if let Some(leader) = self.leader {
            exited(leader).await;
        }
        self.kill();
        self.end_survivors().await;
        self.child.as_mut()?.wait().await.ok()
    }

    /// Asks all processes of the group to end.
    pub(crate) fn terminate(&self) {
        if let Some(leader) = self.leader {
            // Fails only if nothing is left to signal.
            kill_process_group(leader, Signal::TERM).ok();
        }
    }

    /// How the process ended, if it ends within this time. It is not reaped.
    pub(crate) async fn end_within(&self, time: Duration) -> Option<WaitIdStatus> {
        let leader = self.leader?;
        drop(tokio::time::timeout(time, exited(leader)).await);
        exit_status(leader)
    }

    /// Kills all processes of the group and waits for the leader.
    pub(crate) async fn kill_and_wait(&mut self) {
        self.kill();
        self.end_survivors().await;
        if let Some(mut child) = self.child.take() {
            // It was killed, so its exit status says nothing.
            drop(child.wait().await);
        }
    }

    /// The same, and waits a moment until the others are gone, too.
    pub(crate) async fn kill_and_wait_for_all(&mut self) {
        let leader = self.leader;
        self.kill_and_wait().await;
        let Some(leader) = leader else { return };
        let until = tokio::time::Instant::now() + REAP_TIMEOUT;
        while test_kill_process_group(leader).is_ok() && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK_AGAIN.0).await;
        }
    }

    /// Kills the group. The number of a group can be reused once its last process is gone, so it is used only
    /// once, before the leader is reaped.
    fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            self.reaper.lock().living.remove(&leader);
            kill(leader);
        }
    }

    /// Kills processes that left the group. Finding them takes a while, during which other calls must not be
    /// blocked.
    async fn end_survivors(&mut self) {
        if let Some(mark) = self.mark.take() {
            drop(tokio::task::spawn_blocking(move || mark.end_processes()).await);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        if let Some(mark) = self.mark.take() {
            mark.end_processes();
        }
        if let Some(child) = self.child.take() {
            self.reaper.reap(child);
        }
    }
}

fn kill(leader: Pid) {
    // The only possible error is that the group is already gone.
    kill_process_group(leader, Signal::KILL).ok();
}

/// How to look at a process without waiting for it or reaping it.
const LOOK: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOHANG).union(WaitIdOptions::NOWAIT);

/// Whether a process has ended. It is not reaped.
fn has_exited(leader: Pid) -> bool {
    // If it cannot be waited for, it does not exist.
    !matches!(waitid(WaitId::Pid(leader), LOOK), Ok(None))
}

/// How a process has ended, if it has. It is not reaped.
fn exit_status(leader: Pid) -> Option<WaitIdStatus> {
    waitid(WaitId::Pid(leader), LOOK).ok().flatten()
}

/// Waits until a process has ended. Does not reap it, unlike waiting for it as a child.
async fn exited(leader: Pid) {
    #[cfg(target_os = "linux")]
    if wait_for_descriptor(leader).await.is_ok() {
        return;
    }
    let mut pause = LOOK_AGAIN.0;
    while !has_exited(leader) {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK_AGAIN.1);
    }
}

/// Waits until the process's descriptor reports its end, which leaves the process to be reaped by its owner.
#[cfg(target_os = "linux")]
async fn wait_for_descriptor(leader: Pid) -> io::Result<()> {
    let process = pidfd_open(leader, PidfdFlags::empty())?;
    #[expect(
        deprecated,
        reason = "unsound only for descriptors that somebody else can close; this one is owned, and its successor is unsafe code"
    )]
    let process = AsyncFd::with_interest(process, Interest::READABLE)?;
    process.readable().await.map(drop)
}

/// The process groups of one host: running ones, and processes that were killed and not yet waited for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessReaper(Arc<Mutex<ReaperEntries>>);

#[derive(Debug, Default)]
struct ReaperEntries {
    living: HashMap<Pid, ProcessMark>,
    dead: Vec<Child>,
}

impl ProcessReaper {
    fn reap(&self, child: Child) {
        let mut records = self.lock();
        records.dead.push(child);
        records.dead.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Kills every remaining group, whoever holds it, and waits for those that nobody holds.
    pub(crate) async fn reap_all(&self) {
        let (living, dead) = {
            let mut records = self.lock();
            let living: Vec<_> = records.living.drain().collect();
            living.iter().for_each(|(leader, _)| kill(*leader));
            (living, std::mem::take(&mut records.dead))
        };
        if !living.is_empty() {
            let end_survivors = move || living.iter().for_each(|(_, mark)| mark.end_processes());
            drop(tokio::task::spawn_blocking(end_survivors).await);
        }
        for mut child in dead {
            drop(child.wait().await);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReaperEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    /// A process that ends immediately.
    fn brief(reaper: &ProcessReaper) -> ProcessGroup {
        ProcessGroup::start(Command::new("true").stdin(Stdio::null()), reaper).unwrap()
    }

    #[tokio::test]
    async fn a_process_that_is_found_to_be_over_keeps_its_number_until_its_group_was_killed() {
        let reaper = ProcessReaper::default();
        let mut group = brief(&reaper);
        let leader = group.leader.unwrap();
        while !group.has_exited() {
            tokio::task::yield_now().await;
        }
        assert!(test_kill_process_group(leader).is_ok(), "a stranger may have the number now");
        assert_eq!(group.wait_for_end().await.and_then(|status| status.code()), Some(0));
        assert!(test_kill_process_group(leader).is_err(), "it is reaped after that");
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_waited_for_without_giving_its_number_away() {
        let reaper = ProcessReaper::default();
        let mut group = brief(&reaper);
        let leader = group.leader.unwrap();
        exited(leader).await;
        assert!(test_kill_process_group(leader).is_ok());
        // A dropped wait leaves everything unchanged.
        assert!(group.has_exited());
        assert!(group.wait_for_end().await.is_some_and(|status| status.success()));
        assert!(group.has_exited() && reaper.lock().living.is_empty());
    }

    /// Looks at a future again and again. For as long as it is not ready, nobody else may have the number.
    async fn with_number_kept<T>(leader: Pid, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            // What left the group is looked for behind the kill, and that takes a thread and a wait.
            let is_kept = test_kill_process_group(leader).is_ok();
            assert!(polled.is_ready() || is_kept, "it is reaped, and a stranger may have the number now");
            polled
        })
        .await
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_taken_in_after_its_group_was_killed() {
        let reaper = ProcessReaper::default();
        let mut group = brief(&reaper);
        let leader = group.leader.unwrap();
        // It has ended, so nothing but reaping takes its number away.
        exited(leader).await;
        let status = with_number_kept(leader, group.wait_for_end()).await;
        assert!(status.is_some_and(|status| status.success()));
    }

    #[tokio::test]
    async fn a_process_that_is_ended_is_waited_for_after_its_group_was_killed() {
        let reaper = ProcessReaper::default();
        let mut group = brief(&reaper);
        let leader = group.leader.unwrap();
        exited(leader).await;
        with_number_kept(leader, group.kill_and_wait()).await;
        assert!(test_kill_process_group(leader).is_err(), "it is reaped after that");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_system_tells_of_the_end_of_a_process_before_it_is_reaped() {
        let reaper = ProcessReaper::default();
        let mut group = brief(&reaper);
        let leader = group.leader.unwrap();
        wait_for_descriptor(leader).await.unwrap();
        assert!(has_exited(leader) && test_kill_process_group(leader).is_ok());
        assert!(group.wait_for_end().await.is_some());
    }
}
