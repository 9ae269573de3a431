//! Rows through batch jobs: submitted by one process, collected by another.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::files;
use crate::TaskFailure;
use crate::bench::context::BenchContext;
use crate::bench::measure::{ProcessCost, command_text, measure_cost, measure_exit};
use crate::bench::report::whole_number_text;
use crate::bench::server::SimulatorProcess;

/// The model that rows are sent to.
pub(super) const MODEL: &str = "gpt-5.4-mini";
/// The exit code of a run whose jobs are out.
const ROWS_OUT: i32 = 5;
/// How long the simulator may take for all jobs.
const LONGEST_WAIT: Duration = Duration::from_secs(1_800);

/// What the rows of a contender cost.
#[derive(Debug)]
pub(super) struct LaneTrial {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) submit: ProcessCost,
    pub(super) collect: ProcessCost,
    /// The commands of both.
    pub(super) commands: [String; 2],
}

/// What the simulator did for a contender.
#[derive(Debug)]
pub(super) struct SimulatorWork {
    pub(super) jobs: u64,
    /// The peak memory of the simulator, in megabytes.
    pub(super) peak: f64,
}

#[derive(Deserialize)]
struct SimulatorStatistics {
    batches: JobStatistics,
}

#[derive(Deserialize)]
struct JobStatistics {
    jobs: u64,
    jobs_by_state: BTreeMap<String, u64>,
    answers: u64,
}

impl LaneTrial {
    /// Lines of a table with the columns of [`head`], one for each process.
    pub(super) fn lines(&self) -> [Vec<String>; 2] {
        [("submitted", &self.submit), ("collected", &self.collect)].map(|(what, cost)| {
            vec![
                self.name.clone(),
                what.to_owned(),
                whole_number_text(self.rows as f64),
                format!("{:.2}", cost.cpu.as_secs_f64()),
                format!("{:.1}", cost.cpu_per(self.rows)),
                format!("{:.1}", cost.wall.as_secs_f64()),
                whole_number_text(cost.peak_megabytes()),
            ]
        })
    }
}

/// The column headers of [`LaneTrial::lines`].
pub(super) fn head() -> Vec<String> {
    ["by", "rows were", "rows", "CPU seconds", "µs of CPU per row", "seconds", "peak MB"]
        .map(str::to_owned)
        .to_vec()
}

/// Runs of rowmill over the same rows.
pub(super) struct RowmillRuns<'a> {
    context: &'a BenchContext,
    folder: PathBuf,
    rows: u64,
}

impl<'a> RowmillRuns<'a> {
    /// Writes the rows into a folder of their own.
    pub(super) fn prepare(context: &'a BenchContext, name: &str, rows: u64) -> Result<Self, TaskFailure> {
        let folder = context.folder.join("batch").join(name);
        files::renew_folder(&folder)?;
        files::write_rows(&folder, rows)?;
        Ok(Self { context, folder, rows })
    }

    /// Submits and collects the rows, by way of a new simulator.
    pub(super) fn measure(&self) -> Result<(LaneTrial, SimulatorWork), TaskFailure> {
        let mut server = SimulatorProcess::start::<&str>(&self.context.rowmill, &[])?;
        self.work(&server).map_err(|failure| server.explain(&failure))
    }

    fn work(&self, server: &SimulatorProcess) -> Result<(LaneTrial, SimulatorWork), TaskFailure> {
        let mut run = self.context.run("rows.jsonl", "results.jsonl", &format!("openai.{MODEL}"));
        run.args(["--overwrite", "-p", &files::prompt(), "--json-schema", "schema.json"]);
        run.args(["--lane", "batch", "--detach"]);
        let mut retrieve = Command::new(&self.context.rowmill);
        retrieve.args(["batch", "retrieve"]).stderr(Stdio::null());
        for command in [&mut run, &mut retrieve] {
            command.current_dir(&self.folder).env("XDG_STATE_HOME", self.folder.join("state"));
            command.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "x");
        }
        let (submit, _) = measure_exit(&mut run, ROWS_OUT)?;
        let simulator = wait_for_answers(server, self.rows)?;
        let (collect, _) = measure_cost(&mut retrieve)?;
        check_output(&self.folder.join("results.jsonl"), self.rows)?;
        let commands = [&run, &retrieve].map(command_text);
        let trial = LaneTrial { name: "rowmill".to_owned(), rows: self.rows, submit, collect, commands };
        Ok((trial, simulator))
    }
}

/// Waits until the simulator has answered as many rows and all its jobs are complete, so that collecting them is
/// measured and not the wait for them.
pub(super) fn wait_for_answers(server: &SimulatorProcess, rows: u64) -> Result<SimulatorWork, TaskFailure> {
    let began = Instant::now();
    loop {
        let SimulatorStatistics { batches } = serde_json::from_str(&server.stats()?)
            .map_err(TaskFailure::context("cannot read the simulator's statistics"))?;
        let completed = batches.jobs_by_state.get("completed").copied().unwrap_or_default();
        if batches.answers == rows && completed == batches.jobs {
            return Ok(SimulatorWork { jobs: batches.jobs, peak: server.peak_megabytes() });
        }
        if began.elapsed() > LONGEST_WAIT {
            let answers = batches.answers;
            return Err(TaskFailure::new(format!("the simulator answered {answers} of {rows} rows in time")));
        }
        // The simulator tells nobody that a job is complete; it is asked now and then.
        park_timeout(Duration::from_millis(100));
    }
}

/// Checks that every row has ended well.
fn check_output(path: &Path, rows: u64) -> Result<(), TaskFailure> {
    #[derive(Deserialize)]
    struct EnvelopeFields {
        ok: bool,
    }
    let mut ok = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        let envelope: EnvelopeFields = serde_json::from_str(&line?)
            .map_err(TaskFailure::context("the output holds a line that is no envelope"))?;
        ok += u64::from(envelope.ok);
    }
    if ok == rows { Ok(()) } else { Err(TaskFailure::new(format!("{ok} of {rows} rows ended ok"))) }
}
