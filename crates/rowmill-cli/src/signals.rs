//! Ctrl-C, SIGTERM and SIGHUP, and SIGXFSZ, the signal of a file that may not grow.

use std::process::{Command, Stdio};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The request of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or SIGHUP: the terminal is gone.
    Terminate,
}

/// Listens for signals from its creation on.
#[derive(Debug)]
pub(crate) struct SignalListener {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if SIGHUP is ignored, as by `nohup`, and must stay ignored.
    hangup: Option<Signal>,
}

/// SIGXFSZ, which has no name in tokio.
const FILE_SIZE: i32 = 25;

/// From now on, a write to a file that may not become any larger (`ulimit -f`) fails. Without this, the signal ends the
/// process, and nobody is told why.
pub(crate) fn outlive_file_size_limit() {
    // The handler stays when runtime and listener are gone. A signal that is ignored would be ignored by every
    // process that is started later, too. Where there can be no handler, the process ends as it did.
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let _inside = runtime.enter();
    drop(signal(SignalKind::from_raw(FILE_SIZE)));
}

impl SignalListener {
    pub(crate) fn listen() -> std::io::Result<Self> {
        let hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup })
    }

    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            () = wait_for_signal(self.hangup.as_mut()) => StopSignal::Terminate,
        }
    }
}

/// Waits for a signal; forever if the signal is not handled.
async fn wait_for_signal(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this process was started with SIGHUP ignored.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let mask = status.as_deref().and_then(ignored_signals);
    mask.map_or_else(child_ignores_hangup, |mask| mask & 1 != 0)
}

/// The mask of ignored signals in `/proc/self/status`; SIGHUP is its lowest bit.
fn ignored_signals(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Whether a child shell survives a SIGHUP. Ignored signals are inherited, and a shell does not change
/// that. For systems without `/proc`.
fn child_ignores_hangup() -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill -HUP $$"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read_from_the_status_of_the_process() {
        let status = "Name:\trowmill\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored_signals(status), Some(0x1001));
        assert_eq!(ignored_signals("Name:\trowmill\n"), None);
    }

    #[test]
    fn a_shell_tells_as_the_status_does_whether_a_hangup_is_ignored() {
        assert_eq!(child_ignores_hangup(), ignores_hangup());
    }
}
