//! Test support for runs in the batch lane whose process is killed: a provider, a run, and what must hold at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rowmill_testkit::{Simulator, SimulatorScript};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Ended, KEY, Place, finish, row_numbers};

/// A provider with a batch API, as the simulator serves it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchProvider {
    pub(crate) model: &'static str,
    /// The variables of its base URL and of its key.
    variables: [&'static str; 2],
    /// What its base URL ends with.
    path: &'static str,
    /// Whether its requests are uploaded as a file before the job is created.
    pub(crate) has_uploads: bool,
}

const fn provider(model: &'static str, variables: [&'static str; 2], path: &'static str) -> BatchProvider {
    BatchProvider { model, variables, path, has_uploads: true }
}

pub(crate) const OPENAI: BatchProvider = provider("openai.m", ["OPENAI_BASE_URL", "OPENAI_API_KEY"], "/v1");
pub(crate) const RESPONSES: BatchProvider = BatchProvider { model: "responses.m", ..OPENAI };
pub(crate) const ANTHROPIC: BatchProvider = BatchProvider {
    has_uploads: false,
    ..provider("anthropic.m", ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"], "")
};
pub(crate) const GOOGLE: BatchProvider = provider("google.m", ["GEMINI_BASE_URL", "GEMINI_API_KEY"], "");
pub(crate) const MISTRAL: BatchProvider =
    provider("mistral.m", ["MISTRAL_BASE_URL", "MISTRAL_API_KEY"], "/mistral/v1");
pub(crate) const GROQ: BatchProvider =
    provider("groq.m", ["GROQ_BASE_URL", "GROQ_API_KEY"], "/groq/openai/v1");
pub(crate) const TOGETHER: BatchProvider =
    provider("together.m", ["TOGETHER_BASE_URL", "TOGETHER_API_KEY"], "/together/v1");
pub(crate) const AZURE: BatchProvider =
    provider("azure.m", ["AZURE_BASE_URL", "AZURE_OPENAI_API_KEY"], "/azure/openai/v1");

/// The first attempt at a row whose text begins with this fails.
const FAILS_ONCE: &str = "[[503x1]]";

/// The text of a row whose first attempt fails.
pub(crate) fn failing_once(text: &str) -> String {
    format!("{FAILS_ONCE} {text}")
}

/// How long something may take that is certain to happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a look at another process can wait for the next one.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// A run in the batch lane.
pub(crate) struct BatchRun {
    pub(crate) simulator: Simulator,
    pub(crate) place: Place,
    /// The texts of its rows.
    texts: Vec<String>,
    flags: Vec<String>,
    poll_every: &'static str,
}

impl BatchRun {
    /// A run whose jobs end at once. The first attempt at the last row fails, so that there are two rounds of jobs.
    pub(crate) fn of_two_rounds(provider: BatchProvider) -> Self {
        let rows = (1..=4).map(|row| format!("row {row}")).chain([failing_once("row 5")]);
        Self::new(provider, SimulatorScript::new(), rows)
    }

    /// A run over rows with these texts.
    pub(crate) fn new<T: AsRef<str>>(
        provider: BatchProvider,
        script: SimulatorScript,
        texts: impl IntoIterator<Item = T>,
    ) -> Self {
        let simulator = Simulator::start_blocking(script.key(KEY));
        let mut place = Place::new();
        let [base_url, key] = provider.variables;
        place.set(base_url, &format!("{}{}", simulator.url(), provider.path));
        place.set(key, KEY);
        let flags = ["-m", provider.model, "-p", "{{p}}", "--lane", "batch"].map(str::to_owned).to_vec();
        let texts: Vec<String> = texts.into_iter().map(|text| text.as_ref().to_owned()).collect();
        let lines: String =
            texts.iter().map(|text| format!("{}\n", serde_json::json!({"p": text}))).collect();
        place.write("rows.jsonl", lines);
        Self { simulator, place, texts, flags, poll_every: "1ms" }
    }

    /// Lets its processes look at jobs less often.
    pub(crate) fn polling_every(mut self, wait: &'static str) -> Self {
        self.poll_every = wait;
        self
    }

    /// Starts the run, or continues it.
    pub(crate) fn start(&self) -> Child {
        self.start_with(&["--resume"])
    }

    pub(crate) fn start_with(&self, more: &[&str]) -> Child {
        let flags = self.flags.iter().map(String::as_str).chain(["--poll-every", self.poll_every]);
        self.place.start_rows(&flags.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    /// Continues the run to its end.
    pub(crate) fn resume(&self) -> Ended {
        finish(self.start()).ok()
    }

    /// Collects results until none is out.
    pub(crate) fn retrieve(&self) {
        for _ in 0..200 {
            let ended = self.place.rowmill(&["batch", "retrieve"]);
            if ended.code == 0 {
                return;
            }
            ended.code(5);
        }
        panic!("rows are still out");
    }

    /// Waits until the simulator holds a request of the process, and kills it.
    #[track_caller]
    pub(crate) fn kill_when_held(&self, mut child: Child) {
        wait_for_state(&mut child, || self.simulator.stats().batches.held_requests == 1);
        kill(child);
    }

    /// The text of the ledger; empty before there is one.
    pub(crate) fn ledger(&self) -> String {
        fs::read_to_string(self.ledger_path()).unwrap_or_default()
    }

    pub(crate) fn ledger_path(&self) -> PathBuf {
        let folder = self.work_folder();
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_ledger = |path: &PathBuf| path.display().to_string().contains("/ledger-");
        entries.filter(is_ledger).max().unwrap_or_else(|| folder.join("ledger-1.jsonl"))
    }

    pub(crate) fn work_folder(&self) -> PathBuf {
        self.place.path(".out.jsonl.rowmill")
    }

    /// The files of jobs that are in the work folder, with their lengths.
    pub(crate) fn job_files(&self) -> BTreeMap<String, u64> {
        let entries = fs::read_dir(self.work_folder().join("jobs")).into_iter().flatten().flatten();
        let sized = entries.filter_map(|entry| {
            let length = entry.metadata().ok()?.len();
            Some((entry.file_name().into_string().ok()?, length))
        });
        sized.collect()
    }

    /// Whether the ledger has a job in this stage.
    pub(crate) fn has_job_stage(&self, name: &str) -> bool {
        self.ledger().contains(&format!("\"stage\":{{\"stage\":\"{name}\""))
    }

    /// The provider's ids of all jobs that the run knows.
    pub(crate) fn known_jobs(&self) -> BTreeSet<String> {
        let status = self.place.rowmill(&["batch", "status", "--json"]).ok();
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        let jobs = status["jobs"].as_array().unwrap().clone();
        jobs.iter().filter_map(|job| job["id"].as_str().map(str::to_owned)).collect()
    }

    /// Checks that every row has one envelope, that no request was submitted twice in a round, and that the run knows
    /// every job of the provider.
    #[track_caller]
    pub(crate) fn assert_whole(&self) {
        let envelopes = self.place.json("out.jsonl");
        let rows = self.texts.len() as u64;
        assert_eq!(row_numbers(&envelopes), (1..=rows).collect::<Vec<_>>());
        for (envelope, text) in envelopes.iter().zip(&self.texts) {
            let text = format!("answer to: {text}");
            let answer = envelope["result"].as_str().unwrap_or_default();
            // The simulator repeats the beginning of a long text.
            let is_its_own = text.starts_with(answer) && answer.len() >= text.len().min(100);
            assert!(envelope["ok"] == true && is_its_own, "{envelope}");
        }
        let stats = self.simulator.stats().batches;
        let sent = (stats.rows, stats.rows_submitted_more_than_once);
        let failing = self.texts.iter().filter(|text| text.starts_with(FAILS_ONCE)).count() as u64;
        assert_eq!(sent, (rows + failing, failing), "{stats:?}");
        assert_eq!(stats.repeated_answers, 0, "{stats:?}");
        let known = self.known_jobs();
        assert_eq!(known.len() as u64, stats.jobs, "{known:?} {stats:?}");
        assert_eq!(self.job_files(), BTreeMap::new(), "nothing of a finished run is left");
    }
}

/// Waits until something is so while a process works.
#[track_caller]
pub(crate) fn wait_for_state(child: &mut Child, reached: impl Fn() -> bool) {
    let began = Instant::now();
    while !reached() {
        if let Some(status) = child.try_wait().unwrap() {
            let mut text = String::new();
            if let Some(errors) = &mut child.stderr {
                std::io::Read::read_to_string(errors, &mut text).unwrap();
            }
            panic!("it ended with {status} before it was to be killed: {text}");
        }
        assert!(began.elapsed() < PATIENCE, "what was waited for did not come");
        thread::park_timeout(BETWEEN_LOOKS);
    }
}

/// Kills a process, which must not have ended before.
#[track_caller]
pub(crate) fn kill(mut child: Child) {
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(9), "it must have died, not ended: {errors}");
}

/// Stops a process when something is so. It is still so when this returns, until the process goes on.
#[track_caller]
pub(crate) fn stop_when(child: &mut Child, reached: impl Fn() -> bool) {
    loop {
        wait_for_state(child, &reached);
        send(child, Signal::STOP);
        let state = format!("/proc/{}/stat", child.id());
        let is_stopped = || fs::read_to_string(&state).unwrap().rsplit(") ").next().unwrap().starts_with('T');
        wait_for_state(child, is_stopped);
        if reached() {
            return;
        }
        send(child, Signal::CONT);
    }
}

pub(crate) fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}
