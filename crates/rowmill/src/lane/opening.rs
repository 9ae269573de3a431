//! The batch lane of a run that begins or is resumed.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::jobs::JobTable;
use rowmill_core::ports::LedgerPosition;
use rowmill_types::settings::{LANE, RESUME};
use rowmill_types::{Money, Problem, ProblemCode};
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

use super::adapters::LaneAdapters;
use super::failures::KnownFailures;
use super::job_files::JobPaths;
use super::jobs_out::{RequestsOut, WaitsPerRow};
use super::journal::{RecordedJobs, read_jobs};
use super::lane_state::{BatchLane, LaneState};
use super::options::{BatchContinuationMode, Lane};
use super::phase::LanePhase;
use super::reserve::JobReserve;
use super::results::ResultIndex;
use super::switching::LiveCallFacts;
use super::truncated::TruncatedAnswers;
use crate::batch_runs::RunMemory;
use crate::report::UnusedAnswers;
use crate::run_storage::RunStorage;
use crate::spec::RunSpec;

impl BatchLane {
    /// The lane of a run that begins or is resumed.
    pub(super) fn open(
        spec: &RunSpec,
        folder: &Path,
        (memory, adapters): (RunMemory, LaneAdapters),
    ) -> Result<Self, Problem> {
        let paths = JobPaths::in_work_folder(folder);
        // Locked before anything is read: what another process records afterwards would not be known here.
        let storage = RunStorage::open_locked(folder)?;
        let recorded = read_jobs(&*storage.store)?;
        let phase = first_phase(spec, &recorded);
        let (jobs, end) = (recorded.jobs, recorded.end);
        if !spec.existing.resumes() && jobs.may_be_at_provider() {
            return Err(jobs_out_problem());
        }
        let resumes = spec.existing.resumes();
        let (jobs, end) = if resumes { (jobs, end) } else { Default::default() };
        let truncated = TruncatedAnswers::read(paths.truncated());
        let mut failures = KnownFailures::read(paths.failures());
        let scope = spec.work.lane.scope;
        if scope == BatchContinuationMode::All && !jobs.has_blocking_jobs() && !jobs.has_collectable() {
            // Every row that failed is tried again.
            failures.clear();
        }
        let mut state = LaneState::new(jobs, phase, failures, truncated);
        state.retries_earlier_failures = scope == BatchContinuationMode::All;
        let started = (Timestamp::now(), Instant::now());
        let seed = format!("{}-{}-{}", folder.display(), started.0.as_nanosecond(), std::process::id());
        // Only agents have several requests under way for a row.
        let has_agents = !spec.work.agents.cards.is_empty();
        let rows_wait_for = if has_agents { WaitsPerRow::Several } else { WaitsPerRow::One };
        Ok(Self {
            storage,
            paths,
            retries: spec.work.retries,
            limits: spec.work.budget,
            prefix: format!("rowmill-{:016x}", xxh3_64(seed.as_bytes())),
            failures_final_from: if scope == BatchContinuationMode::All {
                end
            } else {
                LedgerPosition::START
            },
            started,
            scope,
            rows_wait_for,
            repair_lane: spec.work.lane.repair_lane,
            adapters,
            memory,
            state: Mutex::new(state),
        })
    }
}

impl LaneState {
    /// The state before the first pass.
    fn new(jobs: JobTable, phase: LanePhase, failures: KnownFailures, truncated: TruncatedAnswers) -> Self {
        Self {
            jobs,
            endpoints: Default::default(),
            index: ResultIndex::default(),
            out: RequestsOut::default(),
            failures,
            truncated,
            reserve: JobReserve::default(),
            phase,
            wants_live_repairs: false,
            left_to_next_pass: false,
            live: LiveCallFacts::default(),
            pass_time: Duration::ZERO,
            round: 0,
            most_requests: Default::default(),
            made: 0,
            written: Vec::new(),
            problem: None,
            stop: Default::default(),
            is_first_pass: true,
            retries_earlier_failures: false,
            saved: Money::ZERO,
            unused: UnusedAnswers::default(),
            spent_before: None,
            has_sent_a_round: false,
            held_back: None,
            earlier: None,
        }
    }
}

/// The phase in which a process takes up a run: one that has switched to live calls to meet a deadline does not go back
/// to jobs before that time.
fn first_phase(spec: &RunSpec, recorded: &RecordedJobs) -> LanePhase {
    let lane = &spec.work.lane;
    let has_deadline = spec.work.stop_rules.deadline.is_some();
    let may_switch = lane.lane == Lane::Auto && lane.scope == BatchContinuationMode::All && has_deadline;
    if !(may_switch && recorded.has_switched() && spec.existing.resumes()) {
        return LanePhase::Jobs;
    }
    match recorded.jobs.has_blocking_jobs() || recorded.jobs.has_collectable() {
        true => LanePhase::Leaving,
        false => LanePhase::Live,
    }
}

/// The problem that a run whose jobs are at the provider would be forgotten.
pub(super) fn jobs_out_problem() -> Problem {
    Problem::new(ProblemCode::OutputExists, "batch jobs of an earlier run with this output are not finished")
        .hint(format!("continue it with {} {RESUME}, or cancel its jobs first", LANE.with_value("batch")))
}
