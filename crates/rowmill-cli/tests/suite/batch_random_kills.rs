//! Runs in the batch lane that are killed at random moments, over and over.

use std::time::{Duration, Instant};

use rowmill_testkit::{RandomDistribution, SimulatedBatches, SimulatorScript};

use crate::batch_support::{ANTHROPIC, BatchProvider, BatchRun, OPENAI, failing_once, kill};

/// Jobs take up to this long, of a clock that each kill moves on.
const LONGEST_JOB: Duration = Duration::from_secs(20 * 3_600);
/// How many times as fast as real time that clock runs in the end.
const FAST: f64 = 40_000.0;
const JOBS: u64 = 20;
/// The longest time that a process has before it is killed, in microseconds.
const LONGEST_LIFE: u64 = 600_000;

/// Pseudo-random numbers that are the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// A number that `cargo xtask soak batch` sets.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var_os(name).map_or(usual, |text| text.to_str().unwrap().parse().unwrap())
}

/// A run in twenty jobs. The first attempt at every twentieth row fails.
fn run_in_twenty_jobs(provider: BatchProvider, rows: u64) -> BatchRun {
    let length = RandomDistribution::Uniform { low: 0.0, high: LONGEST_JOB.as_secs_f64() };
    let script =
        SimulatorScript::new().seed(rows).batches(SimulatedBatches::new().duration(length).time_scale(FAST));
    let texts = (1..=rows).map(|row| match row % JOBS {
        0 => failing_once(&format!("row {row}")),
        _ => format!("row {row}"),
    });
    let run = BatchRun::new(provider, script, texts).polling_every("30ms");
    let name = provider.model.trim_end_matches(".m");
    // Jobs are filled up to nine tenths of a limit.
    let most = rows / JOBS * 10 / 9;
    run.place.write("rowmill.toml", format!("[providers.{name}.batch]\nmax_requests = {most}\n"));
    run
}

fn killed_at_random(provider: BatchProvider, (rows, kills): (u64, u64), seed: u64) {
    let run = run_in_twenty_jobs(provider, rows);
    run.simulator.stop_job_clock();
    let mut dice = Dice(seed);
    for _ in 0..kills {
        // Most are killed early, while rows are read and jobs are submitted.
        let wait = dice.below(LONGEST_LIFE) >> dice.below(4);
        let moment = Instant::now() + Duration::from_micros(wait);
        let child = run.start();
        while Instant::now() < moment {
            std::thread::park_timeout(moment.saturating_duration_since(Instant::now()));
        }
        kill(child);
        run.simulator.advance_job_clock(LONGEST_JOB / u32::try_from(kills).unwrap());
    }
    run.simulator.restart_job_clock();
    run.resume();
    run.assert_whole();
    println!(
        "{}: {rows} rows, {kills} kills, seed {seed}, {:?}",
        provider.model,
        run.simulator.stats().batches
    );
}

#[test]
fn no_random_kills_make_a_run_submit_a_row_twice_or_forget_a_job() {
    let kills = setting("ROWMILL_SOAK_KILLS", 10);
    let rows = if kills > 10 { 2_000 } else { 400 };
    let seed = setting("ROWMILL_SOAK_SEED", 1);
    killed_at_random(OPENAI, (rows, kills), seed);
    killed_at_random(ANTHROPIC, (rows, kills), seed + 1);
}
