//! `RateLimitConfig` and limits that batches share: in Langroid limits apply to the whole process, by
//! address and model. Here a batch has its own limits, and `SharedLimits` is a value that batches share
//! explicitly.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join};
use rowmill::{Batch, MinuteLimits, PaceMode, SharedLimits};
use rowmill_core::ports::Model;
use rowmill_engine::ROW_MEMORY;
use rowmill_testkit::{FakeModel, Simulator, fake_answer};
use rowmill_types::{CallError, Completion, Request};
use tokio::time::Instant;

use crate::kit::{At, MODEL, Room, ask, echoing, own};

fn batch(model: &Arc<FakeModel>) -> Batch<usize> {
    Batch::over(0..10_usize).prompt(ask).worker(own(model)).concurrency(2)
}

#[tokio::test]
async fn how_many_items_at_once_every_batch_says_for_itself_whatever_it_shares() {
    let (model, limits) = (Arc::new(FakeModel::default().hold_answers()), SharedLimits::default());
    let release = async {
        // This is reached only if each batch has two slots.
        while model.seen().len() < 4 {
            tokio::task::yield_now().await;
        }
        model.release();
    };
    let both = join(batch(&model).shared_limits(&limits).run(), batch(&model).shared_limits(&limits).run());
    let ((one, other), ()) = join(both, release).await;
    assert_eq!((one.unwrap().report.ok, other.unwrap().report.ok), (10, 10));
    assert_eq!(model.most_at_once(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_rate_that_one_batch_keeps_to_does_not_bind_the_next() {
    let (model, limits) = (Arc::new(FakeModel::default()), SharedLimits::default());
    let rates = MinuteLimits { requests: Some(60), ..MinuteLimits::default() };
    batch(&model).minute_limits(rates).shared_limits(&limits).run().await.unwrap();
    let began = Instant::now();
    batch(&model).shared_limits(&limits).run().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn limits_are_a_batchs_own_unless_they_are_shared() {
    let model = Arc::new(FakeModel::default().hold_answers());
    let release = async {
        // This is reached only if each batch has two slots.
        while model.seen().len() < 4 {
            tokio::task::yield_now().await;
        }
        model.release();
    };
    let both = join(batch(&model).run(), batch(&model).run());
    let ((one, other), ()) = join(both, release).await;
    assert_eq!((one.unwrap().report.ok, other.unwrap().report.ok), (10, 10));
    assert_eq!(model.most_at_once(), 4);
}

/// The duration of a second batch at 60 calls per minute.
async fn second(limits: [&SharedLimits; 2]) -> Duration {
    let model = Arc::new(FakeModel::default());
    let rates = MinuteLimits { requests: Some(60), ..MinuteLimits::default() };
    let batch = |limits| batch(&model).minute_limits(rates).shared_limits(limits).run();
    batch(limits[0]).await.unwrap();
    let began = Instant::now();
    batch(limits[1]).await.unwrap();
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn rate_limits_are_shared_with_the_value_and_only_with_it() {
    let (one, other) = (SharedLimits::default(), SharedLimits::default());
    let apart = second([&one, &other]).await;
    let shared = SharedLimits::default();
    let together = second([&shared, &shared.clone()]).await;
    // A bucket that was used before is empty, so the second batch waits for all of its calls.
    assert!(together >= Duration::from_secs(9), "{together:?}");
    assert!(together > apart, "{together:?} {apart:?}");
}

#[tokio::test]
async fn rate_limits_that_the_provider_tells_are_kept_without_any_setting() {
    // The last two calls wait for a second each: the allowance of a minute has been used up by then.
    let limits = rowmill_testkit::SimulatedLimits {
        requests: Some(60),
        ..rowmill_testkit::SimulatedLimits::default()
    };
    let simulator = Simulator::start_blocking(echoing().limits(limits));
    let batch = Batch::over(0..62_usize).prompt(ask).worker(MODEL).at(&simulator);
    let results = batch.pace_mode(PaceMode::Auto).run().await.unwrap();
    let stats = simulator.stats();
    assert_eq!((results.report.ok, stats.answers, stats.rate_limited), (62, 62, 0));
}

/// Takes a second for an answer, and does not store requests.
#[derive(Debug, Default)]
struct Counting(Room);

impl Model for Counting {
    fn complete<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            let _inside = self.0.enter();
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(fake_answer("fine"))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_that_do_not_fit_into_memory_together_are_asked_one_after_the_other() {
    // A prompt counts twice, because the request contains it, too.
    for (length, most) in [(ROW_MEMORY / 4 + 1, 1), (ROW_MEMORY / 8, 2)] {
        let model = Arc::new(Counting::default());
        let batch = Batch::over(0..2_usize).prompt(move |_: &usize| "x".repeat(length));
        let results = batch.worker(own(&model)).concurrency(2).run().await.unwrap();
        assert_eq!((results.report.ok, model.0.most()), (2, most), "{length}");
    }
}
