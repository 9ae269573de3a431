//! Measures the cost per row of one contender, after its start.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::TaskFailure;
use crate::bench::measure::{ProcessCost, command_text, measure_cost, median};
use crate::bench::report::whole_number_text;
use crate::bench::server::SimulatorProcess;

/// The number of rows at once, and so the number of rows until all workers have started.
pub(super) const PARALLEL: u64 = 64;

/// A program that works on rows, and how often each row calls the model.
pub(super) struct BenchContender<'a> {
    pub(super) name: String,
    pub(super) server: &'a SimulatorProcess,
    /// The rows beyond the first [`PARALLEL`].
    pub(super) rows: u64,
    /// Model calls for each row.
    pub(super) calls: u64,
    /// The command that works on this many rows.
    pub(super) command: Box<dyn Fn(u64) -> Command + 'a>,
}

/// The cost of the first rows alone, and of all of them.
pub(super) struct ContenderTrial {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) rows: u64,
    pub(super) calls: u64,
    /// Calls that the rows did not need: a competitor may discard an answer and call again.
    pub(super) surplus: u64,
    start: ProcessCost,
    runs: Vec<ProcessCost>,
}

impl BenchContender<'_> {
    /// Works on the first rows, which measures the cost of starting.
    pub(super) fn start(&self) -> Result<ContenderTrial, TaskFailure> {
        let (start, surplus) = self.work(PARALLEL)?;
        Ok(ContenderTrial {
            name: self.name.clone(),
            command: command_text(&(self.command)(PARALLEL + self.rows)),
            rows: self.rows,
            calls: self.calls,
            surplus,
            start,
            runs: Vec::new(),
        })
    }

    /// Works on all rows once more.
    pub(super) fn measure(&self, trial: &mut ContenderTrial) -> Result<(), TaskFailure> {
        let (cost, surplus) = self.work(PARALLEL + self.rows)?;
        trial.runs.push(cost);
        trial.surplus += surplus;
        Ok(())
    }

    /// Returns the cost of this many rows, and the number of calls that they do not need.
    fn work(&self, rows: u64) -> Result<(ProcessCost, u64), TaskFailure> {
        let before = requests(self.server)?;
        let (cost, _) = measure_cost(&mut (self.command)(rows))?;
        let (asked, needed) = (requests(self.server)? - before, rows * self.calls);
        let surplus = asked.checked_sub(needed).ok_or_else(|| {
            TaskFailure::new(format!("{} asked {asked} times for {rows} rows, not {needed} times", self.name))
        })?;
        Ok((cost, surplus))
    }
}

impl ContenderTrial {
    /// Microseconds per row beyond the first ones, of the time that `of` selects.
    fn per_row(&self, of: impl Fn(&ProcessCost) -> Duration) -> f64 {
        let seconds = |cost: &ProcessCost| of(cost).as_secs_f64();
        let beyond = |cost: &ProcessCost| (seconds(cost) - seconds(&self.start)) * 1e6 / self.rows as f64;
        median(&self.runs.iter().map(beyond).collect::<Vec<_>>())
    }

    /// Microseconds of CPU per row, in all processes together.
    pub(super) fn cpu(&self) -> f64 {
        self.per_row(|cost| cost.cpu)
    }

    /// A line of the table.
    pub(super) fn line(&self) -> Vec<String> {
        let peak = self.runs.iter().map(ProcessCost::peak_megabytes).fold(0.0, f64::max);
        let mut line = vec![self.name.clone()];
        let numbers = [
            self.rows as f64,
            self.calls as f64,
            self.cpu(),
            self.per_row(ProcessCost::own),
            self.per_row(|cost| cost.children),
            self.cpu() / self.calls as f64,
            1e6 / self.per_row(|cost| cost.wall),
            self.start.cpu.as_secs_f64() * 1e3,
            peak,
        ];
        line.extend(numbers.map(whole_number_text));
        line
    }
}

/// The column headers of [`ContenderTrial::line`].
pub(super) fn head() -> Vec<String> {
    let names = [
        "worked on by",
        "rows",
        "model calls per row",
        "µs of CPU per row",
        "of it its own",
        "of it its tools'",
        "µs of CPU per model call",
        "rows/s",
        "ms of CPU for the first 64 rows and the start",
        "peak MB",
    ];
    names.map(str::to_owned).to_vec()
}

fn requests(server: &SimulatorProcess) -> Result<u64, TaskFailure> {
    let stats: Value =
        serde_json::from_str(&server.stats()?).map_err(TaskFailure::context("not statistics"))?;
    stats["requests"].as_u64().ok_or_else(|| TaskFailure::new("the simulator does not count its calls"))
}
