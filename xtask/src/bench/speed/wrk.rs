//! `wrk`, the reference: a load generator in C that only sends and receives.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bench::measure::{ProcessCost, measure_cost};
use crate::{TaskFailure, printer};

/// The cost of a run of `wrk`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadResult {
    pub(super) requests: u64,
    pub(super) cost: ProcessCost,
}

/// Finds `wrk`, or installs it if that is allowed; returns its version.
pub(in crate::bench) fn version() -> Result<String, TaskFailure> {
    if let Some(version) = ask_version() {
        return Ok(version);
    }
    let missing = || TaskFailure::new("`wrk` is not installed: `apt-get install wrk`");
    if !rustix::process::geteuid().is_root() {
        return Err(missing());
    }
    printer::note("installing wrk");
    let installed = Command::new("apt-get").args(["install", "--yes", "wrk"]).output();
    installed.ok().filter(|output| output.status.success()).and_then(|_| ask_version()).ok_or_else(missing)
}

fn ask_version() -> Option<String> {
    // `wrk -v` prints its version and then fails with its usage message.
    let output = Command::new("wrk").arg("-v").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().take_while(|word| !word.starts_with('[')).collect::<Vec<_>>();
    (!version.is_empty()).then(|| version.join(" "))
}

/// Writes a script that sends these requests in turn, unchanged.
pub(super) fn script(path: &Path, requests: &[String]) -> Result<(), TaskFailure> {
    let mut text = String::from("local requests = {\n");
    for request in requests {
        let escaped =
            request.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
        writeln!(text, "\"{escaped}\",").map_err(TaskFailure::context("cannot make the script"))?;
    }
    text.push_str(
        "}\nlocal at = 0\nfunction request()\n  at = at % #requests + 1\n  return requests[at]\nend\n",
    );
    Ok(fs::write(path, text)?)
}

/// The command that sends the requests of a script for a number of seconds, 64 at once.
pub(super) fn command(script: &str, seconds: u64, url: &str) -> Command {
    let mut command = Command::new("wrk");
    command.args(["-t1", "-c64"]).arg(format!("-d{seconds}s")).args(["-s", script, url]);
    command
}

/// Runs it and parses its counts.
pub(super) fn run(command: &mut Command) -> Result<LoadResult, TaskFailure> {
    let (cost, output) = measure_cost(command)?;
    if output.contains("Non-2xx") || output.contains("Socket errors") {
        return Err(TaskFailure::new(format!("wrk met errors:\n{output}")));
    }
    let requests =
        counted(&output).ok_or_else(|| TaskFailure::new(format!("cannot read wrk's report:\n{output}")))?;
    Ok(LoadResult { requests, cost })
}

fn counted(output: &str) -> Option<u64> {
    let line = output.lines().find(|line| line.contains(" requests in "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_the_report() {
        let report = "Running 2s test @ http://h\n  1 threads\n  90123 requests in 2.00s, 9.1MB read\n";
        assert_eq!(counted(report), Some(90_123));
        assert_eq!(counted("unable to connect"), None);
    }
}
