//! What a process costs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
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
    if needs_none { word.to_owned() } else { format!("'{word}'") }
}

/// A simulator in a process of its own, which ends with this value.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: String,
}

impl Server {
    pub(super) fn start(rowmill: &Path, flags: &[&str]) -> Result<Self, Failure> {
        let mut child = Command::new(rowmill)
            .arg("simulate")
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Failure::of("cannot start the simulator"))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_default().to_owned();
        let server = Self { child, address };
        if server.address.is_empty() {
            return Err(Failure::new("the simulator did not say where it listens"));
        }
        Ok(server)
    }

    /// Adds to a client's failure whether this server was there at all.
    pub(super) fn explain(&mut self, failure: &Failure) -> Failure {
        let state = match self.child.try_wait() {
            Ok(Some(status)) => format!("the simulator had ended: {status}"),
            Ok(None) => "the simulator is still running".to_owned(),
            Err(error) => format!("the state of the simulator is unknown: {error}"),
        };
        Failure::new(format!("{failure}\n{state}"))
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
