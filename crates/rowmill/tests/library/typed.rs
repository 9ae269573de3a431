//! Typed answers: in Langroid a type is a tool message that the caller must parse. Here the schema of a
//! type is sent with every request, answers that violate it are corrected, and results have that type.

use rowmill::{Batch, ItemError, LedgerOptions, ReturnError, RowErrorKind};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::kit::At;

/// A model without a bound on its answers.
const MODEL: &str = "generic.m";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Verdict {
    /// What it is.
    label: String,
    score: u8,
}

fn judging() -> Simulator {
    Simulator::start_blocking(SimulatorScript::new().answer_prompts(|prompt, call| match (prompt, call) {
        ("broken", _) => SimulatedAnswer::Text("no JSON at all".into()),
        ("mended", 1) => SimulatedAnswer::Json(json!({"label": "half"})),
        (prompt, _) => SimulatedAnswer::Json(json!({"label": prompt, "score": 7})),
    }))
}

fn batch(simulator: &Simulator, items: &[&'static str]) -> Batch<&'static str, Verdict> {
    let batch = Batch::over(items.to_vec()).prompt(|item: &&str| *item).worker(MODEL).at(simulator);
    batch.answer_type::<Verdict>()
}

fn verdict(label: &str) -> Verdict {
    Verdict { label: label.into(), score: 7 }
}

#[tokio::test]
async fn typed_answers_are_of_the_type_and_its_schema_goes_with_the_request() {
    let simulator = judging();
    let results = batch(&simulator, &["a", "b"]).run().await.unwrap();
    assert_eq!(results.into_vec(), [verdict("a"), verdict("b")]);
    let body = simulator.requests()[0].json();
    let sent = &body["response_format"]["json_schema"]["schema"]["properties"];
    assert_eq!(sent["label"]["description"], "What it is.");
    assert!(sent["score"].is_object(), "{body}");
}

#[tokio::test]
async fn typed_answers_that_break_the_schema_are_corrected() {
    let simulator = judging();
    let results = batch(&simulator, &["mended"]).map_answers(|done| (done.answer, done.calls)).run().await;
    assert_eq!(results.unwrap().into_vec(), [(verdict("mended"), 2)]);
    let calls = simulator.calls();
    assert_eq!((calls.len(), calls[1].messages.len()), (2, 3));
    assert!(calls[1].messages[2].text.contains("score"), "{:?}", calls[1].messages[2]);
}

#[tokio::test]
async fn typed_answers_that_stay_broken_are_that_items_failure_with_the_answer_inside() {
    for (repairs, calls) in [(0, 2), (1, 3), (3, 5)] {
        let simulator = judging();
        let batch = batch(&simulator, &["broken", "a"]).repairs(repairs).on_failure(ReturnError);
        let results = batch.run().await.unwrap();
        let Err(ItemError::Failed { error, .. }) = &results.items[0] else { unreachable!("{results:?}") };
        assert_eq!(error.kind, RowErrorKind::StructuredOutput);
        assert_eq!(error.raw_text.as_deref(), Some("no JSON at all"));
        assert_eq!(results.items[1], Ok(verdict("a")));
        assert_eq!(simulator.stats().requests, calls);
    }
}

#[tokio::test]
async fn typed_answers_are_kept_and_a_resume_with_another_type_is_refused() {
    let (simulator, folder) = (judging(), tempfile::tempdir().unwrap());
    let first = batch(&simulator, &["a", "b"]).ledger(LedgerOptions::new(folder.path()));
    let first = first.run().await.unwrap();
    let again = batch(&simulator, &["a", "b"]).ledger(LedgerOptions::resume(folder.path()));
    assert_eq!(again.run().await.unwrap().items, first.items);
    let other = Batch::over(["a", "b"]).prompt(|item: &&str| *item).worker(MODEL).at(&simulator);
    let other = other.answer_type::<Vec<String>>().ledger(LedgerOptions::resume(folder.path()));
    let error = other.run().await.unwrap_err();
    assert!(error.to_string().contains("schema: has changed"), "{error}");
    assert_eq!(simulator.stats().requests, 2);
}
