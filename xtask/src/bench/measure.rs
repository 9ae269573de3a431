//! Measures the cost of a process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use wait4::Wait4;

use crate::TaskFailure;

/// The cost of one process, from its start to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessCost {
    pub(super) wall: Duration,
    /// User and system time together, including the processes that it started and waited for.
    pub(super) cpu: Duration,
    /// The part of it that those processes used, to a hundredth of a second.
    pub(super) children: Duration,
    /// The peak memory in bytes; that of a process it started, if that is more.
    pub(super) peak: u64,
}

impl ProcessCost {
    /// Microseconds of CPU per item, for `count` items.
    pub(super) fn cpu_per(&self, count: u64) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / count as f64
    }

    /// The CPU time of the process itself.
    pub(super) fn own(&self) -> Duration {
        self.cpu.saturating_sub(self.children)
    }

    pub(super) fn rate(&self, count: u64) -> f64 {
        count as f64 / self.wall.as_secs_f64()
    }

    pub(super) fn peak_megabytes(&self) -> f64 {
        self.peak as f64 / 1e6
    }
}

/// Runs a command to its end; fails if the command does. Returns its standard output.
///
/// The kernel counts memory of the parent at the start as the child's, so the peak is never below that of
/// this process; this process therefore keeps nothing large in memory.
pub(super) fn measure_cost(command: &mut Command) -> Result<(ProcessCost, String), TaskFailure> {
    measure_exit(command, 0)
}

/// The same for a command that must end with this exit code.
pub(super) fn measure_exit(command: &mut Command, code: i32) -> Result<(ProcessCost, String), TaskFailure> {
    let shown = command_text(command);
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(TaskFailure::context(format_args!("cannot start `{shown}`")))?;
    let mut output = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            output.push_str(&line?);
            output.push('\n');
        }
    }
    let children = children_of(&child);
    let used = child.wait4()?;
    let wall = started.elapsed();
    if used.status.code() != Some(code) {
        return Err(TaskFailure::new(format!("`{shown}` failed: {}", used.status)));
    }
    let cpu = used.rusage.utime + used.rusage.stime;
    Ok((ProcessCost { wall, cpu, children, peak: used.rusage.maxrss }, output))
}

/// The CPU time of a child's own children when it ended. Waits for its end, but does not reap it. Zero if the
/// system does not report it.
fn children_of(child: &Child) -> Duration {
    /// The unit of the kernel's table, independent of its own clock.
    const TICK: Duration = Duration::from_millis(10);
    let waited = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .and_then(|pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok());
    let table = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let ticks = waited.and_then(|_| child_ticks(&table)).unwrap_or_default();
    TICK * ticks
}

/// User and system time of reaped children: fields 16 and 17 of the kernel's line.
fn child_ticks(line: &str) -> Option<u32> {
    // The second field is a name in parentheses, which may contain anything.
    let (_, fields) = line.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(13).take(2);
    ticks.map(|field| field.parse::<u32>().ok()).sum()
}

/// The result of a run that may have failed.
#[derive(Debug)]
pub(super) struct CommandEnd {
    pub(super) wall: Duration,
    /// `None` if a signal ended it.
    pub(super) code: Option<i32>,
    /// Its standard error.
    pub(super) talk: String,
}

/// Runs a command to its end, whether it succeeds or not.
pub(super) fn run_to_end(command: &mut Command) -> Result<CommandEnd, TaskFailure> {
    let shown = command_text(command);
    let started = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(TaskFailure::context(format_args!("cannot start `{shown}`")))?;
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(CommandEnd { wall: started.elapsed(), code: output.status.code(), talk })
}

/// The median of several values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A command as a user would type it, with names instead of paths.
pub(super) fn command_text(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        // Folders of this machine are of no interest to others.
        .filter(|(name, _)| *name != "PATH" && *name != "XDG_STATE_HOME")
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy())))
        .collect();
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    words.push(program.to_string_lossy().into_owned());
    words.extend(command.get_args().map(|argument| quoted(&argument.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./:=,?&".contains(character);
    let needs_none = !word.is_empty() && word.chars().all(plain) && !word.contains(['?', '&']);
    match (needs_none, word.contains('\'')) {
        (true, _) => word.to_owned(),
        (false, false) => format!("'{word}'"),
        (false, true) => format!("\"{word}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_read_from_the_line_of_a_process_with_any_name() {
        let line = "7 (a) b (c) Z 1 7 7 0 -1 4227084 1 2 3 4 50 60 700 8 20 0 1 0 9 0 0";
        assert_eq!(child_ticks(line), Some(708));
        assert_eq!(child_ticks("7 (a) Z 1"), Some(0));
        assert_eq!(child_ticks(""), None);
    }

    #[test]
    fn what_a_process_used_is_distinguished_from_what_it_started() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let (alone, _) = measure_cost(Command::new("sh").args(["-c", busy])).unwrap();
        assert_eq!(alone.children, Duration::ZERO);
        let (started, _) =
            measure_cost(Command::new("sh").args(["-c", &format!("sh -c '{busy}'; true")])).unwrap();
        assert!(started.children > started.own(), "{started:?}");
    }
}
