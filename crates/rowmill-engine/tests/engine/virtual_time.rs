//! A thousand seeded runs of the engine in virtual time, against a provider with limits, changes, delays, outages and
//! faults that the seed chooses.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::provider::{HANGS, MAX_OUTPUT, ProviderTestRun, Server, utilisation};
use crate::support::{Bench, SHARE, Watched, endpoint, paced, shared};
use rowmill_core::limits::{Budget, BudgetLimits, RunPaceSettings, Spend};
use rowmill_core::ports::{Observer, RunEvent};
use rowmill_core::retry;
use rowmill_engine::{RunOutcome, StopCause, execute_run};
use rowmill_testkit::FakeDataset;
use tokio::sync::Notify;

/// Seeds to run alone, when one of the thousand fails.
const ALONE: [u64; 1] = [0];

/// Counts all activity, to distinguish a long wait from a standstill.
#[derive(Default)]
struct Pulse {
    events: AtomicU64,
    selected: AtomicU64,
    read: Notify,
    rows: u64,
}

impl Observer for Pulse {
    fn observe(&self, event: &RunEvent<'_>) {
        self.events.fetch_add(1, Ordering::SeqCst);
        if let RunEvent::Read { selected, .. } = event
            && self.selected.fetch_add(*selected, Ordering::SeqCst) + selected == self.rows
        {
            self.read.notify_one();
        }
    }
}

/// Ends if nothing happens for days. It starts when all rows were read, because before that the run may wait for a
/// thread, for which virtual time does not wait.
async fn standstill(pulse: &Pulse) {
    pulse.read.notified().await;
    let (mut events, mut idle) = (0, 0);
    while idle < 1_000 {
        tokio::time::sleep(Duration::from_secs(86_400)).await;
        // Other threads get real time to finish what the run may be waiting for.
        tokio::task::spawn_blocking(|| std::thread::park_timeout(Duration::from_millis(5))).await.unwrap();
        let now = pulse.events.load(Ordering::SeqCst);
        idle = if now == events { idle + 1 } else { 0 };
        events = now;
    }
}

struct Played {
    test_run: Arc<ProviderTestRun>,
    server: Arc<Server>,
    end: RunOutcome,
    watched: Watched,
}

/// Runs a test run; `None` if it comes to a standstill.
fn play(test_run: ProviderTestRun) -> Option<Played> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let test_run = Arc::new(test_run);
        let server = Arc::new(Server::new(test_run.clone()));
        let texts = test_run.prompts.iter().map(|prompt| format!("{{\"p\":\"{prompt}\"}}"));
        let mut bench = Bench::over(FakeDataset::from_texts(texts), server.clone());
        let settings =
            paced(RunPaceSettings { parallel: test_run.parallel, max_output: Some(MAX_OUTPUT), ..SHARE });
        let mut endpoint = endpoint("model", server.clone(), settings);
        endpoint.price = Some(test_run.price);
        bench.row_worker().model_roles[0].endpoints = shared(vec![endpoint]);
        let plan = &mut bench.plan;
        plan.worker.timeout = HANGS;
        // At most one fault in twenty, so that no row ever hits that many in a row.
        plan.worker.retry = retry::RetryPolicy { retries: 14, ..retry::RetryPolicy::default() };
        plan.parallel = test_run.parallel.max_calls();
        let limits = BudgetLimits { cost: test_run.budget, tokens: None };
        plan.budget = Budget::new(limits, Spend::default());
        let pulse = Arc::new(Pulse { rows: test_run.prompts.len() as u64, ..Pulse::default() });
        plan.observer = pulse.clone();
        let (plan, watched) = bench.split();
        tokio::select! {
            end = execute_run(plan) => Some(Played { test_run, server, end: end.unwrap(), watched }),
            () = standstill(&pulse) => None,
        }
    })
}

/// The defects of a run, if there are any.
fn fault(seed: u64) -> Result<(), String> {
    let Some(played) = play(ProviderTestRun::new(seed)) else { return Err("standstill".into()) };
    rows(&played)?;
    money(&played)?;
    pace(&played)
}

fn rows(played: &Played) -> Result<(), String> {
    let Played { test_run, end, watched, .. } = played;
    let numbers = watched.numbers();
    let stopped = matches!(end.stopped, Some(StopCause::Budget { .. }));
    if end.stopped.is_some() && !(stopped && test_run.budget.is_some()) {
        return Err(format!("stopped by {:?}", end.stopped));
    }
    if !numbers.is_sorted_by(|a, b| a < b) {
        return Err("envelopes out of order".into());
    }
    if !stopped && numbers.len() != test_run.prompts.len() {
        return Err(format!("{} envelopes for {} rows", numbers.len(), test_run.prompts.len()));
    }
    let released = watched.log.rows("released");
    let mut sent = watched.log.rows("taken");
    sent.retain(|row| !released.contains(row));
    sent.sort_unstable();
    if sent != numbers {
        return Err("rows that were sent and rows with an envelope differ".into());
    }
    let bad = watched.outcomes().into_iter().find(|outcome| {
        !(outcome == "ok" || stopped && ["Interrupted", "RunStopped"].contains(&outcome.as_str()))
    });
    bad.map_or(Ok(()), |outcome| Err(format!("a row ended with {outcome}")))
}

fn money(played: &Played) -> Result<(), String> {
    let Played { test_run, server, end, .. } = played;
    let (billed, spent) = (server.billed(), end.spent.cost.pico());
    match test_run.budget {
        Some(limit) if billed > limit.pico() => Err(format!("{billed} billed of {}", limit.pico())),
        Some(_) if billed > spent => Err(format!("{billed} billed, but only {spent} counted")),
        _ => Ok(()),
    }
}

fn pace(played: &Played) -> Result<(), String> {
    let Played { test_run, server, .. } = played;
    let (calls, refusals) = server.calls();
    // A reduced limit becomes known only with the next answer.
    let handful = if test_run.change.is_some() { 12 } else { 3 };
    if test_run.is_given_its_limits() && refusals > calls / 200 + handful {
        return Err(format!("{refusals} of {calls} calls refused"));
    }
    let shares = utilisation(server);
    match shares.iter().find(|&&share| test_run.can_use_all() && share < 0.95) {
        Some(share) => Err(format!("{:.1} % of the quota used", share * 100.0)),
        None => Ok(()),
    }
}

fn all_are_well(seeds: impl IntoIterator<Item = u64>) {
    let faults: Vec<String> = seeds
        .into_iter()
        .filter_map(|seed| fault(seed).err().map(|fault| format!("seed {seed}: {fault}")))
        .collect();
    assert!(faults.is_empty(), "{} runs went wrong:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn seeds_that_are_looked_at_alone_end_well() {
    all_are_well(ALONE);
}

#[test]
fn of_six_hundred_requests_and_sixty_thousand_tokens_a_minute_all_but_three_in_a_hundred_are_used() {
    for (seed, factor) in (0..8).zip([0.5, 2.0, 2.0, 0.5, 2.0, 0.5, 0.5, 2.0]) {
        let played = play(ProviderTestRun::of_a_minute(seed, factor)).unwrap();
        rows(&played).unwrap();
        let (calls, refusals) = played.server.calls();
        assert!(refusals * 200 <= calls, "test run {seed}: {refusals} of {calls} calls refused");
        let shares = utilisation(&played.server);
        assert!(
            !shares.is_empty() && shares.iter().all(|share| *share >= 0.97),
            "test run {seed}: {shares:?}"
        );
    }
}

macro_rules! hundreds {
    ($($name:ident: $hundred:literal,)*) => {
        $(
            #[test]
            fn $name() {
                all_are_well($hundred * 100..($hundred + 1) * 100);
            }
        )*
    };
}

hundreds! {
    the_first_hundred_runs_lose_no_row_no_cent_and_no_time: 0,
    the_second_hundred_runs_lose_no_row_no_cent_and_no_time: 1,
    the_third_hundred_runs_lose_no_row_no_cent_and_no_time: 2,
    the_fourth_hundred_runs_lose_no_row_no_cent_and_no_time: 3,
    the_fifth_hundred_runs_lose_no_row_no_cent_and_no_time: 4,
    the_sixth_hundred_runs_lose_no_row_no_cent_and_no_time: 5,
    the_seventh_hundred_runs_lose_no_row_no_cent_and_no_time: 6,
    the_eighth_hundred_runs_lose_no_row_no_cent_and_no_time: 7,
    the_ninth_hundred_runs_lose_no_row_no_cent_and_no_time: 8,
    the_last_hundred_runs_lose_no_row_no_cent_and_no_time: 9,
}
