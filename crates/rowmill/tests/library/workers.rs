//! `clone`, `gen_task`, `message_history` and the isolation of configurations: in Langroid a clone gets
//! a new name and loses sub-tasks, agents whose constructor takes more than a configuration cannot be
//! cloned, there is no way to set a prefix of the history, and copies once saw each other's names. Here
//! a worker is an immutable description, and every item has its own history.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill::{Batch, FunctionFailure, ReturnError, RowErrorKind, Worker, WorkerTools};
use rowmill_core::ports::Model;
use rowmill_testkit::{FakeModel, RecordedRole, fake_answer};
use rowmill_types::{CallError, Completion, MessageRole, Request, ToolOutput};

use crate::kit::{At, MODEL, Notes, ask, echo, host, own, tool};

#[tokio::test]
async fn message_history_begins_anew_with_every_item_after_the_instruction() {
    let simulator = echo();
    let worker = Worker::from_model_name(MODEL).instruction("Be brief.");
    let batch = || Batch::over(0..5_usize).prompt(ask).worker(worker.clone()).at(&simulator).sequential();
    batch().run().await.unwrap();
    batch().run().await.unwrap();
    let calls = simulator.calls();
    assert_eq!(calls.len(), 10);
    for (index, call) in calls.iter().enumerate() {
        assert_eq!(call.system, "Be brief.");
        let reported: Vec<_> = call.messages.iter().map(|message| (message.role, &*message.text)).collect();
        assert_eq!(reported, [(RecordedRole::User, &*ask(&(index % 5)))]);
    }
}

#[tokio::test]
async fn clone_keeps_instruction_tools_and_model_and_shares_nothing_that_changes() {
    let simulator = echo();
    let host = host(|_, _| Ok(ToolOutput::from_text("x")));
    let tools = WorkerTools::from_host(host, vec![tool("look")]);
    let worker = Worker::from_model_name(MODEL).instruction("One.").tools(tools);
    let other = worker.clone().instruction("Two.");
    for worker in [worker, other] {
        let batch = Batch::over(["a"]).prompt(|item: &&str| *item).worker(worker).at(&simulator);
        batch.run().await.unwrap();
    }
    let seen: Vec<_> =
        simulator.calls().into_iter().map(|call| (call.system, call.tools, call.model)).collect();
    let expected = ["One.", "Two."].map(|text| (text.to_owned(), vec!["look".to_owned()], "m".to_owned()));
    assert_eq!(seen, expected);
}

/// A model that records its creation and its end.
#[derive(Debug)]
struct Watched {
    name: String,
    notes: Notes<String>,
}

impl Model for Watched {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        let reported = request.messages.last().map(|message| message.text.clone()).unwrap_or_default();
        Box::pin(async move { Ok(fake_answer(format!("{} on {reported}", self.name))) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.notes.add(format!("{} closed", self.name));
        Box::pin(std::future::ready(()))
    }
}

fn watched(name: impl Into<String>, notes: &Notes<String>) -> Worker {
    let (name, notes) = (name.into(), notes.clone());
    Worker::from_model_maker(name.clone(), move |_| {
        notes.add(format!("{name} made"));
        Ok(Arc::new(Watched { name: name.clone(), notes: notes.clone() }))
    })
}

#[tokio::test]
async fn clone_keeps_the_name_and_is_made_ready_once_for_all_items() {
    let notes = Notes::default();
    let results = Batch::over(0..4_usize).prompt(ask).worker(watched("A", &notes)).run().await.unwrap();
    assert_eq!(results.into_vec(), (0..4).map(|item| format!("A on item {item}")).collect::<Vec<_>>());
    assert_eq!(notes.all(), ["A made", "A closed"]);
}

#[tokio::test]
async fn gen_task_that_blocks_holds_up_no_other_item() {
    let (notes, (ended_one, one_has_ended)) = (Notes::default(), mpsc::channel());
    let one_has_ended = Mutex::new(one_has_ended);
    let batch = Batch::over(0..5_usize).prompt(ask).worker_for(move |index, _| {
        if index == 0 {
            let heard = one_has_ended.lock().unwrap().recv_timeout(Duration::from_secs(30));
            heard.expect("another item should end while this one waits");
        }
        Ok(watched(index.to_string(), &notes))
    });
    let results = batch.on_progress(move |_| ended_one.send(()).unwrap_or_default()).run().await.unwrap();
    assert_eq!(results.into_vec(), (0..5).map(|item| format!("{item} on item {item}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn gen_task_gets_the_place_among_all_items_and_the_item() {
    let (notes, seen) = (Notes::default(), Notes::default());
    let noted = seen.clone();
    let batch = Batch::over(["a", "b", "c", "d", "e"]).prompt(|item: &&str| *item).item_group_size(2);
    let results = batch.worker_for(move |index, item| {
        noted.add((index, *item));
        Ok(watched(format!("{item}{index}"), &notes))
    });
    let results = results.run().await.unwrap();
    assert_eq!(results.into_vec(), ["a0 on a", "b1 on b", "c2 on c", "d3 on d", "e4 on e"]);
    let mut seen = seen.all();
    seen.sort_unstable();
    assert_eq!(seen, [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e")]);
}

#[tokio::test]
async fn gen_task_that_fails_or_panics_is_that_items_failure() {
    let notes = Notes::default();
    let batch = Batch::over(0..4_usize).prompt(ask).worker_for(move |index, _| match index {
        1 => Err(FunctionFailure::new("nobody for this one")),
        2 => panic!("nobody for {index}"),
        _ => Ok(watched("A", &notes)),
    });
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert!(failed.iter().all(|error| error.kind() == Some(RowErrorKind::Function)));
    let message: Vec<String> = failed.iter().map(ToString::to_string).collect();
    let panicked = "item 2 failed: choosing the worker panicked: nobody for 2";
    assert_eq!(message, ["item 1 failed: nobody for this one", panicked]);
}

#[tokio::test]
async fn gen_task_that_gives_a_worker_that_cannot_be_made_ready_is_that_items_failure() {
    let batch = Batch::over(0..2_usize).prompt(ask).worker_for(|index, _| {
        Ok(match index {
            0 => Worker::from_model_name("nobody.m"),
            _ => Worker::from_model("fake", FakeModel::default()),
        })
    });
    let results = batch.on_failure(ReturnError).run().await.unwrap();
    let error = results.items[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), Some(RowErrorKind::Function));
    assert!(error.to_string().contains("nobody"), "{error}");
    assert_eq!(results.items[1].as_deref(), Ok("answer to: item 1"));
}

#[tokio::test]
async fn gen_task_with_clones_of_one_worker_makes_it_ready_once() {
    let notes = Notes::default();
    let workers = [watched("A", &notes), watched("B", &notes)];
    let batch = Batch::over(0..6_usize).prompt(ask).concurrency(3);
    let batch = batch.worker_for(move |index, _| Ok(workers[index % 2].clone()));
    let results = batch.run().await.unwrap();
    assert_eq!(results.items[3], "B on item 3");
    let mut notes = notes.all();
    notes.sort_unstable();
    assert_eq!(notes, ["A closed", "A made", "B closed", "B made"]);
}

#[tokio::test]
async fn gen_task_with_a_fresh_worker_closes_it_when_the_item_has_ended() {
    let notes = Notes::default();
    let noted = notes.clone();
    let batch = Batch::over(0..3_usize).prompt(ask).sequential();
    let batch = batch.worker_for(move |index, _| Ok(watched(index.to_string(), &noted)));
    batch.run().await.unwrap();
    assert_eq!(notes.all(), ["0 made", "0 closed", "1 made", "1 closed", "2 made", "2 closed"]);
}

#[tokio::test]
async fn gen_task_can_carry_whatever_the_program_wants() {
    // Further arguments of a constructor are captured instead.
    let connection = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&connection);
    let batch = Batch::over(0..3_usize).prompt(ask).worker_for(move |index, _| {
        shared.fetch_add(1, Ordering::SeqCst);
        Ok(Worker::from_model(format!("w{index}"), FakeModel::default()))
    });
    batch.run().await.unwrap();
    assert_eq!(connection.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn an_own_model_sees_only_the_messages_of_its_item() {
    let model = Arc::new(FakeModel::default());
    let results = Batch::over(0..50_usize).prompt(ask).worker(own(&model)).run().await.unwrap();
    assert_eq!(results.items[7], "answer to: item 7");
    assert_eq!(model.seen().len(), 50);
    for request in model.seen() {
        let reported: Vec<_> =
            request.messages.iter().map(|message| (message.role, &*message.text)).collect();
        assert_eq!(reported, [(MessageRole::User, &*format!("item {}", request.row - 1))]);
    }
}

#[tokio::test]
async fn names_and_instructions_of_items_do_not_leak_into_each_other() {
    let simulator = echo();
    let base = Worker::from_model_name(MODEL);
    let batch = Batch::over(0..30_usize).prompt(ask).concurrency(10).at(&simulator);
    let batch = batch.worker_for(move |index, _| Ok(base.clone().instruction(format!("You are {index}."))));
    batch.run().await.unwrap();
    let calls = simulator.calls();
    assert_eq!(calls.len(), 30);
    for call in calls {
        let number = call.prompt.strip_prefix("item ").unwrap();
        assert_eq!(call.system, format!("You are {number}."));
    }
}
