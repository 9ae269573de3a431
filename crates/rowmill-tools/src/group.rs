//! Processes in groups of their own, so that whatever they start ends with them.

use std::collections::HashSet;
use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rowmill_types::open_files_used_up;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// Why a process could not be started, with what helps where this machine's limit on open files
/// is the cause: a process takes three of them for its pipes.
pub(crate) fn with_remedy(error: io::Error) -> io::Error {
    match open_files_used_up(&error) {
        true => io::Error::new(
            error.kind(),
            "this machine allows no more open files; raise the limit with `ulimit -n 1024`",
        ),
        false => error,
    }
}

/// A process and everything in its group. Dropping it ends them all.
#[derive(Debug)]
pub(crate) struct Group {
    child: Option<Child>,
    leader: Option<Pid>,
    graves: Graves,
}

impl Group {
    /// Starts a process as the first of a new group.
    pub(crate) fn start(command: &mut Command, graves: &Graves) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn().map_err(with_remedy)?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        graves.lock().living.extend(leader);
        Ok(Self { child: Some(child), leader, graves: graves.clone() })
    }

    /// The process, to take its pipes from.
    pub(crate) fn child(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    /// Whether the process has ended by itself.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Waits until the process has ended, then ends what it left behind.
    pub(crate) async fn ended(&mut self) -> Option<ExitStatus> {
        let status = match &mut self.child {
            Some(child) => child.wait().await.ok(),
            None => None,
        };
        self.kill();
        status
    }

    /// Ends all processes of the group and waits for the first of them.
    pub(crate) async fn end(mut self) {
        self.kill();
        if let Some(mut child) = self.child.take() {
            // It was killed, so there is nothing to learn from how it ended.
            drop(child.wait().await);
        }
    }

    /// The number of a group is free again once its last process is gone, so it is used once.
    fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            self.graves.lock().living.remove(&leader);
            kill(leader);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        if let Some(child) = self.child.take() {
            self.graves.bury(child);
        }
    }
}

fn kill(leader: Pid) {
    // The only error is that the group is gone already.
    kill_process_group(leader, Signal::KILL).ok();
}

/// The groups of one host: those that live, and processes that were killed and not yet waited
/// for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graves(Arc<Mutex<Records>>);

#[derive(Debug, Default)]
struct Records {
    living: HashSet<Pid>,
    dead: Vec<Child>,
}

impl Graves {
    fn bury(&self, child: Child) {
        let mut records = self.lock();
        records.dead.push(child);
        records.dead.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Ends every group that is left, whoever holds it, and waits for those that nobody holds.
    pub(crate) async fn clear(&self) {
        let dead = {
            let mut records = self.lock();
            records.living.drain().for_each(kill);
            std::mem::take(&mut records.dead)
        };
        for mut child in dead {
            drop(child.wait().await);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
