//! What a process costs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

use crate::Failure;

/// What one process cost, from its start to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    /// User and system time together.
    pub(super) cpu: Duration,
    /// The most memory that it had at once, in bytes.
    pub(super) peak: u64,
}

impl Cost {
    /// Microseconds of CPU for each of `count` things.
    pub(super) fn cpu_per(&self, count: u64) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / count as f64
    }

    pub(super) fn rate(&self, count: u64) -> f64 {
        count as f64 / self.wall.as_secs_f64()
    }

    pub(super) fn peak_megabytes(&self) -> f64 {
        self.peak as f64 / 1e6
    }
}

/// Runs a command to its end; fails if the command does. Its standard output is returned.
///
/// The kernel counts memory of the parent at the start as the child's, so the peak is
/// never below that of this process; this process therefore holds nothing large.
pub(super) fn cost_of(command: &mut Command) -> Result<(Cost, String), Failure> {
    let shown = shown(command);
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(Failure::of(format_args!("cannot start `{shown}`")))?;
    let mut output = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            output.push_str(&line?);
            output.push('\n');
        }
    }
    let used = child.wait4()?;
    let wall = started.elapsed();
    if !used.status.success() {
        return Err(Failure::new(format!("`{shown}` failed: {}", used.status)));
    }
    let cost = Cost { wall, cpu: used.rusage.utime + used.rusage.stime, peak: used.rusage.maxrss };
    Ok((cost, output))
}

/// How a run ended that need not have ended well.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) wall: Duration,
    /// `None` when a signal ended it.
    pub(super) code: Option<i32>,
    /// What it wrote on standard error.
    pub(super) talk: String,
}

/// Runs a command to its end, whatever that is.
pub(super) fn end_of(command: &mut Command) -> Result<Ended, Failure> {
    let shown = shown(command);
    let started = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(Failure::of(format_args!("cannot start `{shown}`")))?;
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Ended { wall: started.elapsed(), code: output.status.code(), talk })
}

/// The middle one of several values.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A command as a person would type it, with names instead of paths.
pub(super) fn shown(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
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
