//! Processes that left the process group of their parent, and are killed with it nevertheless.
//!
//! A process that starts its own session is in no group that could be killed, and once its parent is gone,
//! nothing shows where it came from except its environment, which it inherited.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::process::Command;

/// The variable that identifies the call that a process belongs to.
pub(crate) const VARIABLE: &str = "ROWMILL_CALL";

/// The mark in the environment of all processes that one process started, directly or indirectly.
#[derive(Debug, Clone)]
pub(crate) struct ProcessMark(String);

impl ProcessMark {
    /// Marks a process that is about to be started. If rowmill itself was started by such a process, the new
    /// process belongs to both.
    pub(crate) fn put_on(command: &mut Command) -> Self {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{:016x}", RandomState::new().hash_one(number));
        let given =
            command.as_std().get_envs().find(|(name, _)| *name == VARIABLE).and_then(|(_, value)| value);
        let value = match given.and_then(|value| value.to_str()) {
            Some(outer) => format!("{outer},{mark}"),
            None => mark.clone(),
        };
        command.env(VARIABLE, value);
        Self(mark)
    }

    /// Kills all processes with the mark. One that removed it from its environment is not found.
    pub(crate) fn end_processes(&self) {
        #[cfg(target_os = "linux")]
        linux::end_processes(&self.0);
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;

    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

    use super::VARIABLE;

    /// How often processes are searched for: those that are found may have started others since.
    const MOST_LOOKS: usize = 32;

    pub(super) fn end_processes(mark: &str) {
        let mut ended = HashSet::new();
        for _ in 0..MOST_LOOKS {
            let found: Vec<Pid> =
                processes().filter(|pid| !ended.contains(pid) && has_mark(*pid, mark)).collect();
            if found.is_empty() {
                return;
            }
            for pid in found {
                end(pid, mark);
                ended.insert(pid);
            }
        }
    }

    fn processes() -> impl Iterator<Item = Pid> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
    }

    /// Whether a process has the mark. If that cannot be read, the process belongs to another user or is
    /// gone.
    fn has_mark(pid: Pid, mark: &str) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).unwrap_or_default();
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
        value.is_some_and(|marks| marks.split(|byte| *byte == b',').any(|one| one == mark.as_bytes()))
    }

    fn end(pid: Pid, mark: &str) {
        match pidfd_open(pid, PidfdFlags::empty()) {
            // Its number may belong to another process by now; the descriptor still refers to the same
            // process.
            Ok(process) if has_mark(pid, mark) => drop(pidfd_send_signal(process, Signal::KILL)),
            Ok(_) => {}
            // The kernel is too old for that, or the process is gone.
            Err(_) => drop(kill_process(pid, Signal::KILL)),
        }
    }
}
