//! Runs with `auto` and a deadline, in virtual time: passes, jobs and ledger are the real ones, and the provider is in
//! memory.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use rowmill_core::limits::CallParallelism;
use rowmill_core::ports::{
    BatchApi, BatchRules, ExpiredJobResultRule, JobCounts, JobFile, JobKeyReporting, JobReport, JobResult,
    JobState, Model,
};
use rowmill_data::{InputLocation, InputSpec};
use rowmill_types::{
    CallError, CallFailure, CallTiming, Completion, ExitCode, FinishReason, ProblemCode, Request, TokenUsage,
};
use tokio::time::Instant;

use super::adapters::LaneAdapters;
use super::options::Lane;
use super::passes::run_with_adapters;
use crate::control::{RunControl, RunNotice};
use crate::environment::RunEnvironment;
use crate::report::RunReport;
use crate::spec::{ExistingOutput, OutputTarget, PromptSource, RunSpec};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// The timeout of live calls, and the longest time that they take.
const SLOW_CALL: Duration = Duration::from_secs(30);
const PARALLEL: usize = 8;

/// A generator of well-mixed numbers (`SplitMix64`).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    fn seconds(&mut self, least: Duration, most: Duration) -> Duration {
        Duration::from_secs(self.within(least.as_secs(), most.as_secs()))
    }
}

/// A job at the provider: its requests are finished one after the other.
#[derive(Debug)]
struct FakeJob {
    key: String,
    requests: Vec<(String, u64)>,
    created: Instant,
    takes: Duration,
    cancelled: Option<Instant>,
}

impl FakeJob {
    /// The number of requests that are finished, and paid for.
    fn finished(&self) -> usize {
        let until = self.cancelled.unwrap_or_else(Instant::now).min(Instant::now());
        let share = (until - self.created).as_secs_f64() / self.takes.as_secs_f64();
        ((share.min(1.0)) * self.requests.len() as f64) as usize
    }
}

/// A provider in memory, and what it was paid for.
#[derive(Debug)]
struct FakeProvider {
    rules: BatchRules,
    state: Mutex<FakeState>,
    /// How long jobs take to end once they are cancelled.
    cancelling: Duration,
}

#[derive(Debug, Default)]
struct FakeState {
    jobs: Vec<FakeJob>,
    draws: u64,
    live: BTreeMap<u64, u64>,
    /// When each row was last answered live.
    answered: BTreeMap<u64, Instant>,
}

impl FakeProvider {
    fn new(seed: u64, cancelling: Duration) -> Arc<Self> {
        let rules = BatchRules {
            provider: "openai".into(),
            max_requests: 20,
            max_bytes: 1_000_000,
            max_request_bytes: 100_000,
            max_queued_tokens: None,
            max_queued_requests: None,
            max_jobs: None,
            window: 24 * HOUR,
            cancel_time: 10 * MINUTE,
            expiry: ExpiredJobResultRule::KeepsFinished,
            job_key: JobKeyReporting::Reported,
        };
        let state = FakeState { draws: seed, ..FakeState::default() };
        Arc::new(Self { rules, state: Mutex::new(state), cancelling })
    }

    fn with<T>(&self, work: impl FnOnce(&mut FakeState) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn draw(&self, least: Duration, most: Duration) -> Duration {
        self.with(|state| {
            let mut draws = Draws(state.draws);
            let drawn = draws.seconds(least, most);
            state.draws = draws.next();
            drawn
        })
    }

    /// How often each row was paid for, in jobs and live.
    fn paid(&self) -> BTreeMap<u64, u64> {
        self.with(|state| {
            let mut paid = state.live.clone();
            for job in &state.jobs {
                for (_, row) in job.requests.iter().take(job.finished()) {
                    *paid.entry(*row).or_default() += 1;
                }
            }
            paid
        })
    }

    /// The rows whose live answers have arrived in this instant.
    fn answered_now(&self) -> Vec<u64> {
        let is_now = |(_, then): &(&u64, &Instant)| **then == Instant::now();
        self.with(|state| state.answered.iter().filter(is_now).map(|(row, _)| *row).collect())
    }

    fn report_of(&self, job: &FakeJob) -> JobReport {
        let state = match job.cancelled {
            Some(then) if then.elapsed() >= self.cancelling => JobState::Cancelled,
            Some(_) => JobState::Cancelling,
            None if job.created.elapsed() >= job.takes => JobState::Completed,
            None => JobState::InProgress,
        };
        let total = job.requests.len() as u64;
        JobReport {
            id: format!("job-{}", job.key),
            key: Some(job.key.clone()),
            state,
            provider_state: state.name().into(),
            counts: Some(JobCounts { total, completed: job.finished() as u64, failed: 0 }),
            created_at: None,
            expires_at: None,
            input_file: None,
            result_files: vec!["results".into()],
            errors: Vec::new(),
        }
    }

    fn find<T>(&self, id: &str, work: impl FnOnce(&mut FakeJob) -> T) -> Result<T, CallError> {
        self.with(|state| {
            let found = state.jobs.iter_mut().find(|job| format!("job-{}", job.key) == id);
            found.map(work).ok_or_else(|| CallError::new(CallFailure::Refused, "no such job"))
        })
    }

    fn adapters(self: &Arc<Self>) -> LaneAdapters {
        let (batches, live) = (Arc::clone(self), Arc::clone(self));
        LaneAdapters {
            batch_api: Box::new(move |_, _, _| Ok(batches.clone() as Arc<dyn BatchApi>)),
            model: Box::new(move |_, _| Ok(live.clone() as Arc<dyn Model>)),
        }
    }
}

fn answer() -> Completion {
    Completion {
        text: "yes".into(),
        finish: FinishReason::Complete,
        calls: Vec::new(),
        native: None,
        hosted_tools: None,
        usage: Some(TokenUsage { input: 10, output: 1, ..TokenUsage::default() }),
        raw_usage: None,
        timing: CallTiming { first_token: None, response: Duration::ZERO },
        model: None,
        service_tier: None,
        rate_limits: None,
        verdict: None,
        batch: None,
    }
}

impl Model for FakeProvider {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        async move {
            tokio::time::sleep(self.draw(Duration::from_secs(1), SLOW_CALL - Duration::from_secs(1))).await;
            self.with(|state| {
                *state.live.entry(request.row).or_default() += 1;
                state.answered.insert(request.row, Instant::now());
            });
            Ok(answer())
        }
        .boxed()
    }
}

impl BatchApi for FakeProvider {
    fn rules(&self) -> &BatchRules {
        &self.rules
    }

    fn write_request(&self, custom_id: &str, request: &Request, out: &mut Vec<u8>) -> Result<(), CallError> {
        out.extend_from_slice(format!("{custom_id} {}\n", request.row).as_bytes());
        Ok(())
    }

    fn upload<'a>(&'a self, _: &'a JobFile) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        ready(Ok(None)).boxed()
    }

    fn create<'a>(
        &'a self,
        job: &'a JobFile,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<JobReport, CallError>> {
        let text = std::fs::read_to_string(&job.path).unwrap();
        let requests = text.lines().map(|line| {
            let (id, row) = line.split_once(' ').unwrap();
            (id.to_owned(), row.parse().unwrap())
        });
        let job = FakeJob {
            key: job.key.clone(),
            requests: requests.collect(),
            created: Instant::now(),
            takes: self.draw(MINUTE, 24 * HOUR),
            cancelled: None,
        };
        let report = self.report_of(&job);
        self.with(|state| state.jobs.push(job));
        ready(Ok(report)).boxed()
    }

    fn report<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<JobReport, CallError>> {
        ready(self.find(id, |job| self.report_of(job))).boxed()
    }

    fn list(&self, _: i64) -> BoxFuture<'_, Result<Vec<JobReport>, CallError>> {
        ready(Ok(self.with(|state| state.jobs.iter().map(|job| self.report_of(job)).collect()))).boxed()
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), CallError>> {
        let cancelled = self.find(id, |job| {
            let is_over = job.created.elapsed() >= job.takes;
            if !is_over {
                job.cancelled.get_or_insert_with(Instant::now);
            }
        });
        ready(cancelled).boxed()
    }

    fn download<'a>(&'a self, job: &'a JobReport, to: &'a Path) -> BoxFuture<'a, Result<(), CallError>> {
        let lines = self.find(&job.id, |job| {
            let finished = job.requests.iter().take(job.finished());
            finished.map(|(id, _)| format!("{id}\n")).collect::<String>()
        });
        ready(lines.map(|lines| std::fs::write(to, lines).unwrap())).boxed()
    }

    fn read_result(&self, line: &[u8]) -> Result<JobResult, String> {
        let custom_id = String::from_utf8(line.to_vec()).map_err(|error| error.to_string())?;
        Ok(JobResult { custom_id, outcome: Ok(answer()) })
    }

    fn delete<'a>(&'a self, _: &'a JobReport) -> BoxFuture<'a, Result<(), CallError>> {
        ready(Ok(())).boxed()
    }
}

/// A run of `rows` rows in a folder.
struct SeededRun {
    folder: tempfile::TempDir,
    rows: u64,
    provider: Arc<FakeProvider>,
    notices: Arc<Mutex<Vec<RunNotice>>>,
}

impl SeededRun {
    fn new(rows: u64, provider: Arc<FakeProvider>) -> Self {
        // Where the system has a folder in memory, syncs take no time.
        let memory = Path::new("/dev/shm");
        let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = made.unwrap();
        let text: String = (0..rows).map(|row| format!("{{\"n\": {row}}}\n")).collect();
        std::fs::write(folder.path().join("rows.jsonl"), text).unwrap();
        Self { folder, rows, provider, notices: Arc::default() }
    }

    fn spec(&self, deadline: Duration, existing: ExistingOutput) -> RunSpec {
        let input = InputSpec::new(InputLocation::File(self.folder.path().join("rows.jsonl")), None);
        let mut spec = RunSpec::new(input, OutputTarget::File(self.folder.path().join("out.jsonl")));
        spec.work.model = "openai.gpt-5.4-mini".into();
        spec.prompt = PromptSource::Inline("{{n}}".into());
        spec.existing = existing;
        spec.work.lane.lane = Lane::Auto;
        spec.work.stop_rules.deadline = Some(deadline);
        spec.work.parallel = CallParallelism::AtMost(PARALLEL);
        spec.work.timeout = SLOW_CALL;
        // What was cancelled is sent live even if nothing is sent again.
        spec.work.retries = 0;
        spec
    }

    async fn run(&self, deadline: Duration, existing: ExistingOutput) -> RunReport {
        let environment = RunEnvironment::from_variables([("OPENAI_API_KEY", "x")]);
        let notices = Arc::clone(&self.notices);
        let notice = move |notice| notices.lock().unwrap().push(notice);
        let control = RunControl { notice: Arc::new(notice), ..RunControl::silent_in(environment) };
        loop {
            let spec = self.spec(deadline, existing);
            match run_with_adapters(spec, &control, self.provider.adapters()).await {
                // A thread of the run that was ended still has the lock: it is in the middle of a write.
                Err(problem) if problem.code == ProblemCode::OutputBusy => tokio::task::yield_now().await,
                ended => return ended.unwrap(),
            }
        }
    }

    fn texts(&self) -> String {
        format!("{:?}", self.notices.lock().unwrap())
    }

    /// Every row has one good envelope.
    fn check_output(&self, seed: u64) {
        let text = std::fs::read_to_string(self.folder.path().join("out.jsonl")).unwrap();
        let envelopes: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let rows: HashSet<u64> =
            envelopes.iter().map(|envelope| envelope["row_number"].as_u64().unwrap()).collect();
        assert_eq!((envelopes.len() as u64, rows.len() as u64), (self.rows, self.rows), "seed {seed}");
        assert!(envelopes.iter().all(|envelope| envelope["ok"] == true), "seed {seed}");
    }

    fn check_paid_once(&self, seed: u64) {
        self.check_paid_once_except(&HashSet::new(), seed);
    }

    /// No row was paid for twice, except for these.
    fn check_paid_once_except(&self, twice: &HashSet<u64>, seed: u64) {
        let paid = self.provider.paid();
        assert_eq!(paid.len() as u64, self.rows, "seed {seed}");
        let is_right = |(row, times): (&u64, &u64)| *times == 1 || (*times == 2 && twice.contains(row));
        assert!(paid.iter().all(is_right), "seed {seed}: {paid:?}, {twice:?} may be paid for twice");
    }
}

/// What live calls alone may take: rounds of slow calls, with the margin.
fn live_time(rows: u64) -> Duration {
    let rounds = rows.div_ceil(PARALLEL as u64) + 1;
    SLOW_CALL.mul_f64(1.5 * rounds as f64)
}

#[tokio::test(start_paused = true)]
async fn over_two_hundred_runs_the_deadline_is_met_and_no_row_is_paid_for_twice() {
    let (mut in_jobs, mut live) = (0, 0);
    for seed in 0..200 {
        let mut draws = Draws(seed);
        let rows = draws.within(1, 50);
        let deadline = live_time(rows) + draws.seconds(Duration::from_secs(1), 8 * HOUR);
        let cancelling = draws.seconds(Duration::ZERO, 10 * MINUTE - 21 * Duration::from_secs(1));
        let run = SeededRun::new(rows, FakeProvider::new(draws.next(), cancelling));
        let began = Instant::now();
        let report = run.run(deadline, ExistingOutput::Refuse).await;
        assert_eq!(report.exit, ExitCode::Ok, "seed {seed}: {}", run.texts());
        assert!(began.elapsed() <= deadline, "seed {seed}: {:?} of {deadline:?}", began.elapsed());
        run.check_output(seed);
        run.check_paid_once(seed);
        let calls = run.provider.with(|state| state.live.len() as u64);
        (in_jobs, live) = (in_jobs + rows - calls, live + calls);
    }
    // Both lanes had much to do, or this would show nothing.
    assert!(in_jobs > 300 && live > 300, "{in_jobs} in jobs, {live} live");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_ended_at_any_moment_goes_on_rightly() {
    for seed in 0..60 {
        let mut draws = Draws(seed);
        let rows = draws.within(10, 50);
        let deadline = live_time(rows) + 15 * MINUTE + draws.seconds(Duration::ZERO, 2 * HOUR);
        let run =
            SeededRun::new(rows, FakeProvider::new(draws.next(), draws.seconds(Duration::ZERO, 9 * MINUTE)));
        let end = Instant::now() + deadline;
        let mut existing = ExistingOutput::Refuse;
        // An answer that arrives in the instant of the end is not in the ledger yet, and nobody knows of it.
        let mut unrecorded = HashSet::new();
        // Most of them near the switch.
        let mut life = deadline.saturating_sub(live_time(rows) + draws.seconds(Duration::ZERO, 11 * MINUTE));
        let report = loop {
            let left = end.saturating_duration_since(Instant::now());
            match tokio::time::timeout(life, run.run(left, existing)).await {
                Ok(report) => break report,
                Err(_) => life = draws.seconds(Duration::from_secs(1), 6 * MINUTE),
            }
            unrecorded.extend(run.provider.answered_now());
            existing = ExistingOutput::Resume;
        };
        assert!(matches!(report.exit, ExitCode::Ok | ExitCode::LimitReached), "seed {seed}: {report:?}");
        if report.exit == ExitCode::LimitReached {
            run.run(12 * HOUR, ExistingOutput::Resume).await;
        }
        run.check_output(seed);
        run.check_paid_once_except(&unrecorded, seed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_does_not_end_its_cancelling_is_given_up_at_the_last_moment() {
    let run = SeededRun::new(20, FakeProvider::new(1, 1_000 * HOUR));
    let began = Instant::now();
    let report = run.run(HOUR, ExistingOutput::Refuse).await;
    assert_eq!(report.exit, ExitCode::Ok);
    assert!(began.elapsed() <= HOUR && began.elapsed() > HOUR / 2, "{:?}", began.elapsed());
    run.check_output(1);
    assert!(run.texts().contains("has not ended batch job `job-"), "{}", run.texts());
    let finished: usize = run
        .provider
        .with(|state| state.jobs.iter().filter(|job| job.cancelled.is_some()).map(FakeJob::finished).sum());
    let twice = run.provider.paid().values().filter(|times| **times == 2).count();
    assert!(finished > 0, "or this would show nothing");
    assert_eq!(twice, finished, "only what the job had finished is paid for twice");
    // The most that the jobs may have used counts as spent, besides eleven tokens for each live call.
    assert!(report.spent.tokens > 5_000, "{:?}", report.spent);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_submitted_if_the_deadline_is_too_near_for_jobs() {
    let run = SeededRun::new(20, FakeProvider::new(1, MINUTE));
    let report = run.run(live_time(20), ExistingOutput::Refuse).await;
    assert_eq!(report.exit, ExitCode::Ok);
    assert_eq!(run.provider.with(|state| state.jobs.len()), 0);
    run.check_output(1);
    run.check_paid_once(1);
}
