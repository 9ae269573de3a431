//! Processes that left the group of the one that started them, and are ended with it all the same.
//!
//! A process that begins a session of its own is in no group that could be killed, and once the process that started it is
//! gone, nothing says any more where it came from: nothing but its environment, which it has from there.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::process::Command;

/// The variable that says to which call a process belongs.
pub(crate) const VARIABLE: &str = "ROWMILL_CALL";

/// What all processes have in their environment that one process started, and those that they started.
#[derive(Debug, Clone)]
pub(crate) struct ProcessMark(String);

impl ProcessMark {
    /// Marks a process that is about to be started. Where rowmill itself was started by such a process, what it
    /// starts belongs to both.
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

    /// Ends all processes that have the mark. One that took it out of its environment is not found.
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

    /// How often processes are looked for: those that are found may have started others since.
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

    /// Whether a process has the mark. What cannot be looked at is somebody else's, or gone.
    fn has_mark(pid: Pid, mark: &str) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).unwrap_or_default();
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
        value.is_some_and(|marks| marks.split(|byte| *byte == b',').any(|one| one == mark.as_bytes()))
    }

    fn end(pid: Pid, mark: &str) {
        match pidfd_open(pid, PidfdFlags::empty()) {
            // Its number may be another process's by now; what was opened stays the same one.
            Ok(process) if has_mark(pid, mark) => drop(pidfd_send_signal(process, Signal::KILL)),
            Ok(_) => {}
            // The kernel is too old for that, or the process is gone.
            Err(_) => drop(kill_process(pid, Signal::KILL)),
        }
    }
}
