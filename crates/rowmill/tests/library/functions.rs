//! `run_batch_function`, `run_batch_agent_method`, `llm_response_batch`: in Langroid a function has no
//! policy for failures, a method gets a fresh instance without its tools and state, and none of the
//! three has limits. Here they are the same builder with all its settings.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use rowmill::{Batch, BatchItem, FunctionFailure, ReturnError, ReturnNone, RowErrorKind, Worker};

use crate::kit::{At, MODEL, Room, answered, ask, echo};

#[tokio::test]
async fn run_batch_function_overlaps_functions_that_block() {
    let together = Barrier::new(4);
    let batch = Batch::over(0..8_usize).concurrency(4).worker_blocking(move |item: &usize| {
        // Each call blocks its thread until three others do so, too.
        together.wait();
        Ok(*item * 2)
    });
    assert_eq!(batch.run().await.unwrap().into_vec(), [0, 2, 4, 6, 8, 10, 12, 14]);
}

#[tokio::test]
async fn run_batch_function_has_a_policy_for_failures_and_panics() {
    let batch = Batch::over(0..4_usize).worker_blocking(|item: &usize| {
        assert_ne!(*item, 1, "one is no good");
        if *item == 2 { Err(FunctionFailure::new("two is no good")) } else { Ok(*item) }
    });
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let message: Vec<String> = results.into_iter().filter_map(Result::err).map(|e| e.to_string()).collect();
    assert!(message[0].starts_with("item 1 failed: the worker panicked: "), "{message:?}");
    assert!(message[0].contains("one is no good"), "{message:?}");
    assert_eq!(message[1], "item 2 failed: two is no good");
}

#[tokio::test]
async fn run_batch_function_keeps_to_its_concurrency() {
    let room = Room::default();
    let entered = room.clone();
    let batch = Batch::over(0..40_usize).concurrency(3).worker_blocking(move |_: &usize| {
        let _inside = entered.enter();
        Ok(())
    });
    batch.run().await.unwrap();
    assert_eq!(room.ever(), 40);
    assert!(room.most() <= 3, "{}", room.most());
}

/// Something with state, like an agent of the program.
struct Agent {
    name: String,
    tools: Vec<&'static str>,
}

impl Agent {
    async fn look_at(&self, item: &str) -> Result<String, FunctionFailure> {
        if item.is_empty() {
            return Err(FunctionFailure::new("there is nothing to look at"));
        }
        Ok(format!("{} looks at {item} with {}", self.name, self.tools.join(" and ")))
    }
}

#[tokio::test]
async fn run_batch_agent_method_keeps_the_tools_and_the_state_of_the_instance() {
    let agent = Arc::new(Agent { name: "A".into(), tools: vec!["a lens", "a lamp"] });
    let batch = Batch::over(["x", "", "y"]).worker_fn(move |item| {
        let agent = Arc::clone(&agent);
        async move { agent.look_at(&item).await }
    });
    let results = batch.concurrency(2).on_failure(ReturnNone).run().await.unwrap();
    let expected = ["A looks at x with a lens and a lamp", "", "A looks at y with a lens and a lamp"];
    assert_eq!(results.items, expected.map(|text| (!text.is_empty()).then(|| text.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn run_batch_agent_method_has_limits_of_time() {
    let batch = || {
        Batch::over(0..3_usize).retries(0).worker_fn(async |item: BatchItem<usize>| {
            if *item == 1 {
                std::future::pending::<()>().await;
            }
            Ok(*item)
        })
    };
    let timeout = batch().timeout(Duration::from_secs(5)).on_failure(ReturnError).run().await.unwrap();
    assert_eq!(timeout.items[1].as_ref().unwrap_err().kind(), Some(RowErrorKind::Timeout));
    assert_eq!(timeout.report.ok, 2);
    let timeout = batch().item_timeout(Duration::from_secs(5)).on_failure(ReturnError).run().await.unwrap();
    assert_eq!(timeout.items[1].as_ref().unwrap_err().kind(), Some(RowErrorKind::Timeout));
}

#[tokio::test]
async fn llm_response_batch_is_a_prompt_and_a_model() {
    let simulator = echo();
    let batch = Batch::over(0..3_usize).prompt(ask).worker(MODEL).at(&simulator);
    assert_eq!(batch.run().await.unwrap().into_vec(), answered(0..3));
}

#[tokio::test]
async fn llm_response_batch_has_a_policy_for_failures() {
    let simulator = echo();
    let prompt = |item: &usize| if *item == 1 { "[[refusal]]".to_owned() } else { ask(item) };
    let batch = Batch::over(0..3_usize).prompt(prompt).worker(Worker::from_model_name(MODEL)).at(&simulator);
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    assert_eq!(results.items[1].as_ref().unwrap_err().kind(), Some(RowErrorKind::Refusal));
    assert_eq!(results.report.ok, 2);
}
