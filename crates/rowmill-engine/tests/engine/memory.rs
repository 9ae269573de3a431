//! The memory of rows that are worked on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::{Model, PromptMaker, PromptRendering};
use rowmill_engine::{AnswerCache, execute_run};
use rowmill_testkit::{busy_failure, fake_answer};
use rowmill_types::{CallError, Completion, Request, Row};

use crate::answers::Memory;
use crate::support::Bench;

const MEMORY: usize = 1_000_000;

/// Renders prompts of a hundred thousand bytes, and of three million for each tenth row.
#[derive(Debug)]
struct Lengthy;

impl PromptMaker for Lengthy {
    fn make_prompt(&self, row: &Row) -> PromptRendering {
        let size = if row.number().is_multiple_of(10) { 3_000_000 } else { 100_000 };
        PromptRendering::Done(Ok(format!("{}{}", row.number(), "x".repeat(size))))
    }
}

/// Counts the bytes of the prompts of concurrent calls.
#[derive(Debug, Default)]
struct Weighing {
    bytes: AtomicUsize,
    calls: AtomicUsize,
    most_bytes: AtomicUsize,
    most_calls: AtomicUsize,
}

impl Model for Weighing {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            let bytes = request.messages[0].text.len();
            let all = self.bytes.fetch_add(bytes, Ordering::SeqCst) + bytes;
            let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(all < MEMORY || calls == 1, "{calls} calls hold {all} bytes");
            self.most_bytes.fetch_max(all, Ordering::SeqCst);
            self.most_calls.fetch_max(calls, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.bytes.fetch_sub(bytes, Ordering::SeqCst);
            self.calls.fetch_sub(1, Ordering::SeqCst);
            // Rows keep their memory while they wait for another attempt.
            if request.attempt == 1 && request.row.is_multiple_of(7) {
                Err(busy_failure())
            } else {
                Ok(fake_answer("fine"))
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_in_flight_stay_within_a_bound_and_one_that_is_larger_goes_alone() {
    for kept_answers in [false, true] {
        let model = Arc::new(Weighing::default());
        let mut bench = Bench::new(100, model.clone());
        bench.plan.parallel = 500;
        bench.plan.memory = MEMORY;
        bench.plan.worker.prompts = Arc::new(Lengthy);
        bench.plan.worker.answer_cache = kept_answers.then(|| AnswerCache {
            store: Arc::new(Memory::default()),
            identity: "model".into(),
            kept_before: rowmill_core::record::ReusedAnswerSource::Cache,
        });
        let (plan, watched) = bench.split();
        execute_run(plan).await.unwrap();
        assert_eq!(watched.outcomes(), ["ok"; 100]);
        let most = (model.most_calls.load(Ordering::SeqCst), model.most_bytes.load(Ordering::SeqCst));
        assert_eq!(most.0, 4, "two hundred thousand bytes each, with what is sent of them");
        assert!(most.1 > 3_000_000, "a prompt that is larger than the bound is sent: {}", most.1);
    }
}
