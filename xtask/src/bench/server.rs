//! A simulator for the measurements.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::TaskFailure;

/// A simulator in its own process, which ends when this value is dropped.
#[derive(Debug)]
pub(super) struct SimulatorProcess {
    child: Child,
    address: String,
}

impl SimulatorProcess {
    pub(super) fn start<F: AsRef<OsStr>>(rowmill: &Path, flags: &[F]) -> Result<Self, TaskFailure> {
        let mut child = Command::new(rowmill)
            .arg("simulate")
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(TaskFailure::context("cannot start the simulator"))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_default().to_owned();
        let server = Self { child, address };
        if server.address.is_empty() {
            return Err(TaskFailure::new("the simulator did not say where it listens"));
        }
        Ok(server)
    }

    /// Adds to a client's failure whether this server was running at all.
    pub(super) fn explain(&mut self, failure: &TaskFailure) -> TaskFailure {
        let state = match self.child.try_wait() {
            Ok(Some(status)) => format!("the simulator had ended: {status}"),
            Ok(None) => "the simulator is still running".to_owned(),
            Err(error) => format!("the state of the simulator is unknown: {error}"),
        };
        TaskFailure::new(format!("{failure}\n{state}"))
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The most memory that it has had so far, in megabytes; not a number if the system does not report it.
    pub(super) fn peak_megabytes(&self) -> f64 {
        let table = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let peak = table.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        kilobytes.map_or(f64::NAN, |kilobytes| kilobytes * 1024.0 / 1e6)
    }

    /// The simulator's counts so far, as JSON.
    pub(super) fn stats(&self) -> Result<String, TaskFailure> {
        let ask = || {
            let mut stream = TcpStream::connect(&self.address)?;
            let request =
                format!("GET /stats HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address);
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).map(|_| answer)
        };
        let answer = ask().map_err(TaskFailure::context("cannot read the statistics of the simulator"))?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.contains(" 200 ") => Ok(body.to_owned()),
            _ => Err(TaskFailure::new("the simulator tells no statistics")),
        }
    }
}

impl Drop for SimulatorProcess {
    fn drop(&mut self) {
        // Fails only if it has already ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
