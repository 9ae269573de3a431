//! Answers that are paid for once and reused.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use rowmill_core::answer_key::answer_key;
use rowmill_core::ports::{AnswerKey, AnswerStore, Model, Observer, RunEvent, StoredAnswer};
use rowmill_core::record::ReusedAnswerSource;
use rowmill_core::validate::ResultSchema;
use rowmill_engine::{AnswerCache, execute_run};
use rowmill_testkit::{FakeDataset, FakeModel, fake_answer, fake_failure};
use rowmill_types::{CallFailure, Completion, FinishReason, Message};

use crate::acting::{Acting, seconds};
use crate::support::{Bench, Watched};

/// Answers in memory.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<AnswerKey, StoredAnswer>>);

impl AnswerStore for Memory {
    fn find(&self, key: AnswerKey) -> BoxFuture<'_, Option<StoredAnswer>> {
        let found = self.0.lock().unwrap().get(&key).cloned();
        Box::pin(async move {
            tokio::task::yield_now().await;
            found
        })
    }

    fn store(&self, key: AnswerKey, answer: &StoredAnswer) {
        self.0.lock().unwrap().insert(key, answer.clone());
    }
}

fn demand(prompts: &[&str], model: Arc<dyn Model>, store: &Arc<Memory>) -> Bench {
    let texts = prompts.iter().map(|prompt| format!("{{\"p\":\"{prompt}\"}}"));
    with_store(Bench::over(FakeDataset::from_texts(texts), model), store)
}

fn with_store(mut bench: Bench, store: &Arc<Memory>) -> Bench {
    let store = store.clone();
    bench.plan.worker.answer_cache =
        Some(AnswerCache { store, identity: "m".into(), kept_before: ReusedAnswerSource::Cache });
    bench
}

/// The origin of each row's answer: `asked`, `duplicate`, `cache`, or its error.
fn origins(watched: &Watched) -> Vec<String> {
    let origin = |envelope: serde_json::Value| match envelope["error"]["type"].as_str() {
        Some(error) => error.to_owned(),
        None => envelope["reused"].as_str().unwrap_or("asked").to_owned(),
    };
    watched.envelopes().into_iter().map(origin).collect()
}

#[tokio::test(start_paused = true)]
async fn rows_that_ask_the_same_are_asked_once_and_each_has_its_envelope() {
    let model = Arc::new(FakeModel::default().delay(seconds(1.0)));
    let store = Arc::default();
    let mut bench = demand(&["a", "a", "b", "a", "b"], model.clone(), &store);
    bench.plan.parallel = 5;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!(origins(&watched), ["asked", "duplicate", "asked", "duplicate", "duplicate"]);
    assert_eq!((model.seen().len(), end.tally.processed_rows), (2, 5));
    assert_eq!(watched.numbers(), [1, 2, 3, 4, 5]);
    let results: Vec<_> = watched.envelopes().iter().map(|envelope| envelope["result"].clone()).collect();
    assert!(results[0] == results[1] && results[0] == results[3] && results[2] == results[4]);
    assert!(results[0] != results[2]);
    let mut taken = watched.log.rows("taken");
    taken.sort_unstable();
    assert_eq!(taken, [1, 3], "rows that are not sent are not taken to be sent");
}

#[tokio::test(start_paused = true)]
async fn when_the_row_that_asks_fails_the_next_one_asks() {
    let script = vec![
        Err(fake_failure(CallFailure::Refused)),
        Err(fake_failure(CallFailure::Filtered)),
        Ok(fake_answer("fine")),
    ];
    let model = Arc::new(FakeModel::default().delay(seconds(1.0)).script("a", script));
    let store = Arc::default();
    let mut bench = demand(&["a"; 6], model.clone(), &store);
    bench.plan.parallel = 6;
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    let expected = ["BadRequest", "ContentFilter", "asked", "duplicate", "duplicate", "duplicate"];
    assert_eq!((origins(&watched), model.seen().len()), (expected.map(str::to_owned).to_vec(), 3));
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_before_is_marked_and_costs_no_call() {
    let store = Arc::new(Memory::default());
    let kept = StoredAnswer { text: "from before".into(), usage: None, model: None };
    store.store(answer_key("m", &[Message::user("a")]), &kept);
    let model = Arc::new(FakeModel::default());
    let (plan, watched) = demand(&["a", "b", "a", "a"], model.clone(), &store).split();
    execute_run(plan).await.unwrap();
    let origins = origins(&watched);
    assert_eq!((origins[0].as_str(), origins[1].as_str()), ("cache", "asked"));
    assert!(origins[2..].iter().all(|origin| origin == "cache" || origin == "duplicate"), "{origins:?}");
    assert_eq!(watched.envelopes()[3]["result"], "from before");
    assert_eq!((model.seen().len(), store.0.lock().unwrap().len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn only_good_answers_are_kept() {
    let refusal = Completion { finish: FinishReason::Refused, ..fake_answer("no") };
    let cut = Completion { finish: FinishReason::Length, ..fake_answer("{\"n\":") };
    let model = Arc::new(
        FakeModel::default()
            .script("refused", vec![Ok(refusal)])
            .script("cut", vec![Ok(cut)])
            .script("wrong", vec![Ok(fake_answer("{\"n\":\"text\"}"))])
            .script("good", vec![Ok(fake_answer("{\"n\":1}"))]),
    );
    let store = Arc::new(Memory::default());
    let mut bench = demand(&["refused", "cut", "wrong", "good", "good"], model, &store);
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    bench.with_schema(ResultSchema::parse(schema, "test").unwrap());
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    let outcomes = watched.outcomes();
    assert!(outcomes[..3].iter().all(|outcome| outcome != "ok"), "{outcomes:?}");
    assert_eq!(outcomes[3..], ["ok", "ok"]);
    assert_eq!(store.0.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_the_schema_of_today_is_asked_for_again() {
    let store = Arc::new(Memory::default());
    let kept = StoredAnswer { text: "no object".into(), usage: None, model: None };
    store.store(answer_key("m", &[Message::user("a")]), &kept);
    let model = Arc::new(FakeModel::default().script("a", vec![Ok(fake_answer("{}"))]));
    let mut bench = demand(&["a", "a"], model.clone(), &store);
    bench.with_schema(ResultSchema::parse(r#"{"type":"object"}"#, "test").unwrap());
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!((origins(&watched), model.seen().len()), (vec!["asked".into(), "duplicate".into()], 1));
}

/// Notes how many rows were read.
struct Reads(Mutex<u64>);

impl Observer for Reads {
    fn observe(&self, event: &RunEvent<'_>) {
        if let RunEvent::Read { selected, .. } = event {
            *self.0.lock().unwrap() += selected;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rows_that_wait_for_an_answer_do_not_pile_up() {
    const ROWS: usize = 20_000;
    let model = Arc::new(FakeModel::default().hold_answers());
    let texts = vec![r#"{"p":"the same"}"#; ROWS];
    let store = Arc::default();
    let mut bench = with_store(Bench::over(FakeDataset::from_texts(texts), model.clone()), &store);
    let reads = Arc::new(Reads(Mutex::new(0)));
    bench.plan.parallel = 16;
    bench.plan.observer = reads.clone();
    let (plan, watched) = bench.split();
    let (end, ()) = tokio::join!(execute_run(plan), async {
        while model.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        // Enough turns to read everything, if anything were reading on.
        for _ in 0..2_000 {
            tokio::task::yield_now().await;
        }
        assert!(*reads.0.lock().unwrap() <= 1_024, "{}", reads.0.lock().unwrap());
        model.release();
    });
    assert_eq!(end.unwrap().tally.processed_rows, ROWS as u64);
    assert_eq!((watched.numbers().len(), model.seen().len()), (ROWS, 1));
}

#[tokio::test(start_paused = true)]
async fn the_first_result_is_one_even_where_others_ask_the_same() {
    let model = Arc::new(Acting::new(|_| (seconds(1.0), Ok(fake_answer("fine")))));
    let store = Arc::default();
    let mut bench = demand(&["a"; 4], model, &store);
    bench.plan.stop_rules.first_result = true;
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"]);
}
