//! Tools: in Langroid the tools of an instance are shared by reference with all clones, or lost. Here a
//! worker defines its tools, a host serves all items or is created for each, and an error in a tool is
//! reported to the model or is that item's failure.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use rowmill::{Batch, OfferedTool, ReturnError, RowErrorKind, Worker, WorkerTools};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_testkit::{SimulatedAnswer, Simulator, SimulatorScript};
use rowmill_types::ToolOutput;
use serde_json::json;

use crate::kit::{At, MODEL, Notes, ask, host, tool};

/// Calls a tool in the first `steps` turns, then answers with the last output of the tool.
fn calling(name: &'static str, steps: u64) -> Simulator {
    Simulator::start_blocking(SimulatorScript::new().answer_calls(move |seen| {
        if seen.turn > steps {
            return SimulatedAnswer::Text(format!("so: {}", seen.last));
        }
        SimulatedAnswer::Calls { text: String::new(), calls: vec![(name.into(), json!({"q": seen.prompt}))] }
    }))
}

#[tokio::test]
async fn an_own_host_gets_the_item_the_tool_and_the_arguments() {
    #[derive(Debug)]
    struct Echo(Notes<String>);
    impl ToolHost for Echo {
        fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
            let ToolRequest { row, tool, arguments, .. } = request;
            Box::pin(async move { Ok(ToolOutput::from_text(format!("{row} {tool} {arguments}"))) })
        }
        fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
            self.0.add(format!("released {row}"));
            Box::pin(std::future::ready(()))
        }
        fn close(&self) -> BoxFuture<'_, ()> {
            self.0.add("closed".into());
            Box::pin(std::future::ready(()))
        }
    }
    let (simulator, notes) = (calling("look", 1), Notes::default());
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    let offered = OfferedTool::new("look", "Looks.", schema.clone());
    let worker =
        Worker::from_model_name(MODEL).tools(WorkerTools::from_host(Echo(notes.clone()), vec![offered]));
    let batch = Batch::over(0..2_usize).prompt(ask).worker(worker).at(&simulator).sequential();
    let results = batch.run().await.unwrap();
    assert_eq!(results.items, ["so: 1 look {\"q\":\"item 0\"}", "so: 2 look {\"q\":\"item 1\"}"]);
    assert_eq!(notes.all(), ["released 1", "released 2", "closed"]);
    let message = &simulator.requests()[0].json()["tools"][0]["function"];
    assert_eq!((&message["description"], &message["parameters"]), (&json!("Looks."), &schema));
}

#[derive(Debug)]
struct Counter {
    item: usize,
    count: AtomicUsize,
    notes: Notes<String>,
}

impl ToolHost for Counter {
    fn call<'a>(&'a self, _: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move { Ok(ToolOutput::from_text(format!("{count} for {}", self.item))) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.notes.add(format!("{} closed", self.item));
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn a_host_per_item_is_made_for_it_and_closed_when_it_has_ended() {
    let (simulator, notes) = (calling("count", 3), Notes::default());
    let noted = notes.clone();
    let make = move |item| {
        noted.add(format!("{item} made"));
        Counter { item, count: AtomicUsize::new(0), notes: noted.clone() }
    };
    let worker = Worker::from_model_name(MODEL).tools(WorkerTools::per_item(make, vec![tool("count")]));
    let batch = Batch::over(0..2_usize).prompt(ask).worker(worker).at(&simulator).sequential();
    assert_eq!(batch.run().await.unwrap().items, ["so: 3 for 0", "so: 3 for 1"]);
    assert_eq!(notes.all(), ["0 made", "0 closed", "1 made", "1 closed"]);
}

#[tokio::test]
async fn a_tool_that_fails_is_reported_to_the_model() {
    let failure = || ToolFailure { message: "out of order".into(), may_have_run: false };
    for (fails, text) in [(true, "so: the tool failed: out of order"), (false, "so: no such thing")] {
        let simulator = calling("look", 1);
        let host =
            host(move |_, _| if fails { Err(failure()) } else { Ok(ToolOutput::error("no such thing")) });
        let worker = Worker::from_model_name(MODEL).tools(WorkerTools::from_host(host, vec![tool("look")]));
        let batch = Batch::over(["a"]).prompt(|item: &&str| *item).worker(worker).at(&simulator);
        assert_eq!(batch.run().await.unwrap().items, [text]);
    }
}

#[tokio::test]
async fn a_tool_that_panics_is_that_items_failure_and_its_siblings_go_all_their_steps() {
    let simulator = calling("step", 6);
    let host = host(|item, _| {
        assert_ne!(item, 0, "nothing for {item}");
        Ok(ToolOutput::from_text("stepped"))
    });
    let worker = Worker::from_model_name(MODEL).tools(WorkerTools::from_host(host, vec![tool("step")]));
    let batch = Batch::over(0..3_usize).prompt(ask).worker(worker).at(&simulator).concurrency(3);
    let batch = batch.map_answers(|done| (done.answer, done.calls));
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let error = results.items[0].as_ref().unwrap_err();
    assert!(error.to_string().contains("nothing for 0"), "{error}");
    assert_eq!(results.items[1], Ok(("so: stepped".to_owned(), 7)));
    assert_eq!(results.items[2], Ok(("so: stepped".to_owned(), 7)));
}

#[tokio::test]
async fn a_tool_that_answers_ends_the_item() {
    let simulator = calling("look", 9);
    let host = host(|item, _| Ok(ToolOutput::from_text(format!("seen {item}"))));
    let worker = Worker::from_model_name(MODEL)
        .tools(WorkerTools::from_host(host, vec![tool("look").use_output_as_answer()]));
    let batch = Batch::over(0..2_usize).prompt(ask).worker(worker).at(&simulator);
    assert_eq!(batch.run().await.unwrap().items, ["seen 0", "seen 1"]);
    assert_eq!(simulator.stats().requests, 2);
}

fn card(folder: &std::path::Path, front: &str) -> Worker {
    let path = folder.join("helper.md");
    std::fs::write(&path, format!("---\nmodel: {MODEL}\n{front}\n---\nYou help {{{{who}}}}.\n")).unwrap();
    Worker::from_card(&path)
}

#[tokio::test]
async fn an_agent_card_brings_its_instruction_its_model_and_its_tools() {
    let simulator = Simulator::start_blocking(SimulatorScript::new().answer_calls(|seen| {
        if seen.turn > 1 {
            return SimulatedAnswer::Text(format!("so: {}", seen.last.lines().last().unwrap_or_default()));
        }
        let name = seen.tools.first().map(|tool| tool.name.clone()).unwrap_or_default();
        SimulatedAnswer::Calls { text: String::new(), calls: vec![(name, json!({"command": "echo hello"}))] }
    }));
    let folder = tempfile::tempdir().unwrap();
    let worker = card(folder.path(), "shell: true").variable("who", "all");
    let batch = Batch::over(["x", "y"]).prompt(|item: &&str| *item).worker(worker).at(&simulator);
    let results = batch.run().await.unwrap();
    assert_eq!(results.items, ["so: hello", "so: hello"]);
    let calls = simulator.calls();
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call.system.starts_with("You help all.") && call.model == "m"));
}

#[tokio::test]
async fn an_agent_card_can_ask_another_model_and_limits_turns() {
    let simulator = calling("none", 0);
    let folder = tempfile::tempdir().unwrap();
    let worker =
        card(folder.path(), "").variable("who", "me").override_card_model("generic.other").agent("helper");
    let batch = Batch::over(["x"]).prompt(|item: &&str| *item).worker(worker).at(&simulator);
    assert_eq!(batch.run().await.unwrap().items, ["so: x"]);
    let models: BTreeMap<String, u64> = simulator.calls().into_iter().map(|call| (call.model, 1)).collect();
    assert_eq!(models, BTreeMap::from([("other".to_owned(), 1)]));
}

#[tokio::test]
async fn a_tool_that_nobody_offers_is_reported_to_the_model() {
    let simulator = calling("nothing", 1);
    let host = host(|_, _| Ok(ToolOutput::from_text("x")));
    let worker = Worker::from_model_name("generic.m").tools(WorkerTools::from_host(host, vec![tool("look")]));
    let batch = Batch::over(["a"]).prompt(|item: &&str| *item).worker(worker).at(&simulator);
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let reply = match &results.items[0] {
        Ok(answer) => answer.clone(),
        Err(error) => {
            assert_ne!(error.kind(), Some(RowErrorKind::Internal));
            error.to_string()
        }
    };
    assert!(reply.contains("nothing"), "{reply}");
}
