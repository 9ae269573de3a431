//! What rows cost one of those that work on them, without its start.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::Failure;
use crate::bench::measure::{Cost, cost_of, median, shown};
use crate::bench::report::whole;
use crate::bench::server::Server;

/// Somebody who works on rows, and how often each row asks the model.
pub(super) struct Contender<'a> {
    pub(super) name: String,
    pub(super) server: &'a Server,
    pub(super) rows: u64,
    /// Model calls for each row.
    pub(super) calls: u64,
    /// A command that works on so many rows.
    pub(super) command: Box<dyn Fn(u64) -> Command + 'a>,
}

/// What a contender used for one row, and for all of them, once or several times.
pub(super) struct Trial {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) rows: u64,
    pub(super) calls: u64,
    pub(super) start: Cost,
    pub(super) runs: Vec<Cost>,
}

impl Contender<'_> {
    /// Works on one row, which is what it costs to start.
    pub(super) fn start(&self) -> Result<Trial, Failure> {
        let start = self.measure(1)?;
        Ok(Trial {
            name: self.name.clone(),
            command: shown(&(self.command)(self.rows)),
            rows: self.rows,
            calls: self.calls,
            start,
            runs: Vec::new(),
        })
    }

    /// Works on all rows. The model must have been asked exactly as often as the rows need.
    pub(super) fn measure(&self, rows: u64) -> Result<Cost, Failure> {
        let before = requests(self.server)?;
        let (cost, _) = cost_of(&mut (self.command)(rows))?;
        let (asked, needed) = (requests(self.server)? - before, rows * self.calls);
        if asked != needed {
            let name = &self.name;
            return Err(Failure::new(format!(
                "{name} asked {asked} times for {rows} rows, not {needed} times"
            )));
        }
        Ok(cost)
    }
}

impl Trial {
    /// Microseconds for each row beyond the first, of what `of` looks at.
    pub(super) fn per_row(&self, of: impl Fn(&Cost) -> Duration) -> f64 {
        let seconds = |cost: &Cost| of(cost).as_secs_f64();
        let beyond = |cost: &Cost| (seconds(cost) - seconds(&self.start)) * 1e6 / (self.rows - 1) as f64;
        median(&self.runs.iter().map(beyond).collect::<Vec<_>>())
    }

    /// Microseconds of CPU for each row, in all processes together.
    pub(super) fn cpu(&self) -> f64 {
        self.per_row(|cost| cost.cpu)
    }

    /// A line of the table.
    pub(super) fn line(&self) -> Vec<String> {
        let own = self.per_row(Cost::own);
        let peak = self.runs.iter().map(Cost::peak_megabytes).fold(0.0, f64::max);
        vec![
            self.name.clone(),
            whole(self.rows as f64),
            self.calls.to_string(),
            whole(self.cpu()),
            whole(own),
            whole(self.per_row(|cost| cost.children)),
            whole(self.cpu() / self.calls as f64),
            whole(1e6 / self.per_row(|cost| cost.wall)),
            whole(self.start.cpu.as_secs_f64() * 1e3),
            whole(peak),
        ]
    }
}

/// What the columns of [`Trial::line`] are.
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
        "ms of CPU to start",
        "peak MB",
    ];
    names.map(str::to_owned).to_vec()
}

fn requests(server: &Server) -> Result<u64, Failure> {
    let stats: Value = serde_json::from_str(&server.stats()?).map_err(Failure::of("not statistics"))?;
    stats["requests"].as_u64().ok_or_else(|| Failure::new("the simulator does not count its calls"))
}
