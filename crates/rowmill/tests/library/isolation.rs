//! Isolation: a thousand items, 64 at once, whose workers have state: no item sees the state of
//! another. In Langroid tool maps are shared by all clones, and one cancelled item kills its siblings.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use rowmill::{Batch, BatchItem, Worker, WorkerTools};
use rowmill_core::ports::{ToolFailure, ToolHost, ToolRequest};
use rowmill_testkit::{RecordedRole, SimulatedAnswer, Simulator, SimulatorScript};
use rowmill_types::ToolOutput;
use serde_json::json;

use crate::kit::{At, Inside, MODEL, Room, ask, tool};

const ITEMS: usize = 1_000;
const AT_ONCE: usize = 64;
const STEPS: u64 = 3;

/// Counts its calls, for one item.
#[derive(Debug)]
struct Counter {
    item: usize,
    calls: AtomicUsize,
    _inside: Inside,
}

impl ToolHost for Counter {
    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        assert_eq!(request.row as usize - 1, self.item);
        Box::pin(async move {
            // Other items run between the two halves of a count.
            let calls = self.calls.load(Ordering::SeqCst) + 1;
            tokio::task::yield_now().await;
            self.calls.store(calls, Ordering::SeqCst);
            Ok(ToolOutput::from_text(format!("{calls} of {}", self.item)))
        })
    }
}

/// Calls the tool three times and answers with all results; fails if a conversation contains messages
/// of another item.
fn suspicious() -> Simulator {
    let script = SimulatorScript::new().keep_requests(0).forget_prompts().answer_calls(|seen| {
        let own = seen.prompt.strip_prefix("item ").unwrap_or_default();
        let heard: Vec<&str> = seen
            .messages
            .iter()
            .filter(|message| message.role != RecordedRole::Assistant)
            .map(|message| message.text.as_str())
            .collect();
        if heard.len() as u64 != seen.turn {
            return SimulatedAnswer::Text(format!("{} messages at turn {}", heard.len(), seen.turn));
        }
        if let Some(foreign) = heard.iter().skip(1).find(|text| text.split(" of ").nth(1) != Some(own)) {
            return SimulatedAnswer::Text(format!("{own} heard {foreign}"));
        }
        match seen.turn {
            turn if turn <= STEPS => {
                SimulatedAnswer::Calls { text: String::new(), calls: vec![("count".into(), json!({}))] }
            }
            _ => SimulatedAnswer::Text(heard.join(", ")),
        }
    });
    Simulator::start_blocking(script)
}

#[tokio::test]
async fn a_thousand_items_with_tools_that_keep_state_and_histories_of_their_own() {
    let simulator = suspicious();
    let room = Room::default();
    let entered = room.clone();
    let make = move |item| Counter { item, calls: AtomicUsize::new(0), _inside: entered.enter() };
    let worker = Worker::from_model_name(MODEL).tools(WorkerTools::per_item(make, vec![tool("count")]));
    let batch = Batch::over(0..ITEMS).prompt(ask).worker(worker).at(&simulator).concurrency(AT_ONCE);
    let results = batch.run().await.unwrap();
    for (item, result) in results.into_iter().enumerate() {
        assert_eq!(result, format!("item {item}, 1 of {item}, 2 of {item}, 3 of {item}"));
    }
    assert_eq!(simulator.stats().requests, ITEMS as u64 * (STEPS + 1));
    // This many had state at once, and none has any more.
    assert!((AT_ONCE / 2..=AT_ONCE).contains(&room.most()), "{}", room.most());
    assert_eq!((room.ever(), room.now()), (ITEMS, 0));
}

#[tokio::test]
async fn a_thousand_items_with_a_function_that_keeps_state() {
    tokio::task_local! {
        static COUNT: Cell<usize>;
    }
    let batch = Batch::over(0..ITEMS).concurrency(AT_ONCE).worker_fn(async |item: BatchItem<usize>| {
        let mut seen = vec![*item];
        let counting = COUNT.scope(Cell::new(0), async {
            for step in 0..5 {
                COUNT.with(|count| count.set(count.get() + *item));
                tokio::task::yield_now().await;
                seen.push(COUNT.with(Cell::get) - step * *item);
            }
        });
        counting.await;
        Ok(seen)
    });
    let results = batch.run().await.unwrap();
    for (item, seen) in results.into_iter().enumerate() {
        assert_eq!(seen, [item; 6]);
    }
}

#[tokio::test]
async fn a_thousand_items_whose_model_sees_only_their_own_messages() {
    let script = SimulatorScript::new().forget_prompts().answer_calls(|seen| {
        let reported: Vec<&str> = seen.messages.iter().map(|message| message.text.as_str()).collect();
        SimulatedAnswer::Text(format!("{} heard {}", seen.prompt, reported.join(" and ")))
    });
    let simulator = Simulator::start_blocking(script);
    let batch = Batch::over(0..ITEMS).prompt(ask).worker(MODEL).at(&simulator).concurrency(AT_ONCE);
    let results = batch.run().await.unwrap();
    for (item, heard) in results.into_iter().enumerate() {
        assert_eq!(heard, format!("item {item} heard item {item}"));
    }
}
