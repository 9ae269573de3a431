//! Keys of requests: in Langroid a call that was cut and is made again is a new one for its provider. Here
//! it has the key that it had before, so that whoever knows keys does nothing twice.

use std::collections::BTreeSet;

use futures_util::future::{BoxFuture, select};
use rowmill::{Batch, LedgerOptions, Worker, WorkerTools};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use rowmill_types::ToolOutput;
use serde_json::json;
use tokio::task::yield_now;

use crate::kit::{At, MODEL, Notes, ask, echoing, tool};

/// How many items there are, all of them under way at once.
const ITEMS: usize = 3;

/// Demands that all parts of a run have sent the same keys, one for each item.
#[track_caller]
fn assert_same_in_all_parts(keys: &[String], parts: usize) {
    let parts_sent: Vec<BTreeSet<&String>> = keys.chunks(ITEMS).map(|part| part.iter().collect()).collect();
    assert_eq!((parts_sent.len(), parts_sent[0].len()), (parts, ITEMS), "{keys:#?}");
    assert!(parts_sent.iter().all(|part| *part == parts_sent[0]), "{keys:#?}");
}

#[tokio::test]
async fn a_request_has_the_same_key_after_every_resume() {
    let (simulator, folder) =
        (Simulator::start_blocking(echoing().hold_after(0)), tempfile::tempdir().unwrap());
    for _ in 0..3 {
        let address = format!("{}/v1", simulator.url());
        let worker = Worker::from_model_name("openai.m?max_tokens=16").key("k").base_url(address);
        let batch = Batch::over(0..ITEMS).prompt(ask).worker(worker).concurrency(ITEMS);
        let run = Box::pin(batch.ledger(LedgerOptions::resume(folder.path())).run());
        let held = Box::pin(simulator.wait_until(|stats| stats.in_flight == ITEMS as u64));
        drop(select(run, held).await);
        simulator.wait_until(|stats| stats.in_flight == 0).await;
    }
    let requests = simulator.requests();
    let key =
        |request: &rowmill_testkit::RecordedRequest| request.header("idempotency-key").unwrap().to_owned();
    assert_same_in_all_parts(&requests.iter().map(key).collect::<Vec<_>>(), 3);
}

/// Keeps the keys of calls, and answers none.
#[derive(Debug)]
struct Hanging(Notes<String>);

impl ToolHost for Hanging {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        self.0.add(request.key.to_owned());
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_call_of_a_tool_has_the_same_key_after_a_resume() {
    let calling = SimulatorScript::new().answer_calls(|seen| SimulatedAnswer::Calls {
        text: String::new(),
        calls: vec![("look".into(), json!({"q": seen.prompt}))],
    });
    let (simulator, folder) = (Simulator::start_blocking(calling), tempfile::tempdir().unwrap());
    let notes = Notes::default();
    for part in 1..=2 {
        let tools = WorkerTools::from_host(Hanging(notes.clone()), vec![tool("look").mark_idempotent()]);
        let worker = Worker::from_model_name(MODEL).tools(tools);
        let batch = Batch::over(0..ITEMS).prompt(ask).worker(worker).at(&simulator).concurrency(ITEMS);
        let run = Box::pin(batch.ledger(LedgerOptions::resume(folder.path())).run());
        let called = Box::pin(async {
            while notes.all().len() < part * ITEMS {
                yield_now().await;
            }
        });
        drop(select(run, called).await);
    }
    assert_same_in_all_parts(&notes.all(), 2);
}
