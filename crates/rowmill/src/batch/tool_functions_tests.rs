use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::Barrier;

use super::*;
use crate::batch::{Batch, BatchFailureCause, ItemError, ReturnError, Worker};
use rowmill_testkit::conformance::{AfterRelease, CountingTool, ToolCase, ToolFacts, check_tool_host};
use rowmill_types::{Problem, RowErrorKind};

#[derive(Deserialize, JsonSchema)]
struct Word {
    word: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// A model that calls the tools that the prompt names and answers with their results.
fn caller(tools: impl Into<WorkerTools>) -> Worker {
    Worker::from_model_name("passthrough").tools(tools)
}

fn call(tool: &str, arguments: &str) -> String {
    format!("***CALL_TOOL {tool} {arguments}")
}

async fn answer(tools: impl Into<WorkerTools>, prompt: String) -> Result<String, ItemError> {
    let batch = Batch::over([prompt]).prompt(String::clone).worker(caller(tools)).on_failure(ReturnError);
    batch.run().await.unwrap().items.pop().unwrap()
}

async fn problem(tools: impl Into<WorkerTools>) -> Problem {
    let error = Batch::over([""]).prompt(|_| "").worker(caller(tools)).run().await.unwrap_err();
    match error.cause() {
        BatchFailureCause::Problem(problem) => problem.clone(),
        other => panic!("the batch ended with {other:?}"),
    }
}

fn counting() -> StatefulTools<AtomicU32> {
    WorkerTools::with_state(|_| AtomicU32::new(0)).add_function(
        "count",
        "",
        |calls: Arc<AtomicU32>, _: Nothing| async move {
            tokio::task::yield_now().await;
            Ok((calls.fetch_add(1, Ordering::Relaxed) + 1).to_string())
        },
    )
}

#[tokio::test]
async fn every_item_has_a_state_of_its_own_that_all_its_calls_see() {
    let twice = "***CALL_TOOL count\n***CALL_TOOL count";
    let batch = Batch::over(vec![twice; 200]).prompt(|item| *item).worker(caller(counting())).concurrency(64);
    for answer in batch.run().await.unwrap() {
        // Calls of one turn are made concurrently, in no order.
        assert!(["1\n2", "2\n1"].contains(&answer.as_str()), "{answer}");
    }
}

#[tokio::test]
async fn states_are_made_by_the_place_of_the_item_and_dropped_with_it() {
    static LIVING: AtomicUsize = AtomicUsize::new(0);
    struct Place(usize);
    impl Drop for Place {
        fn drop(&mut self) {
            LIVING.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let make = |index| {
        LIVING.fetch_add(1, Ordering::SeqCst);
        Place(index)
    };
    let tools =
        WorkerTools::with_state(make).add_function("place", "", |place: Arc<Place>, _: Nothing| async move {
            Ok(place.0.to_string())
        });
    let batch = Batch::over(0..3).prompt(|_| call("place", "")).worker(caller(tools));
    assert_eq!(batch.run().await.unwrap().items, ["0", "1", "2"]);
    assert_eq!(LIVING.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn two_batches_at_once_with_one_worker_do_not_meet_in_its_state() {
    let both = Arc::new(Barrier::new(2));
    let tools =
        WorkerTools::with_state(|_| AtomicU32::new(0)).add_function("count", "", move |calls, _: Nothing| {
            let both = Arc::clone(&both);
            async move {
                // Neither continues before the other has arrived.
                both.wait().await;
                Ok(calls.fetch_add(1, Ordering::Relaxed).to_string())
            }
        });
    let worker = caller(tools);
    let batch = || Batch::over([()]).prompt(|()| call("count", "")).worker(worker.clone()).run();
    let (one, other) = tokio::join!(batch(), batch());
    assert_eq!((one.unwrap().items, other.unwrap().items), (vec!["0".to_owned()], vec!["0".to_owned()]));
}

#[tokio::test]
async fn a_result_ends_the_item_without_asking_the_model_again() {
    let tools = WorkerTools::none().add_function("done", "", |word: Word| async move {
        Ok(ToolOutput::final_result(format!("<{}>", word.word)))
    });
    let batch = Batch::over([call("done", r#"{"word": "yes"}"#)]).prompt(String::clone).worker(caller(tools));
    let results = batch.map_answers(|done| (done.answer, done.calls)).run().await.unwrap();
    assert_eq!(results.items, [("<yes>".to_owned(), 1)]);
}

#[tokio::test]
async fn failures_are_reported_to_the_model() {
    let tools =
        || {
            WorkerTools::none()
                .add_function("number", "", |word: Word| async move {
                    Ok(format!("{}", word.word.parse::<u8>()?))
                })
                .add_function("never", "", |_: Nothing| async { Ok(ToolOutput::error("not today")) })
                .add_tool(
                    OfferedTool::from_argument_type::<Nothing>("slow", "").timeout(Duration::from_millis(1)),
                    |_: Nothing| std::future::pending::<Result<String, FunctionFailure>>(),
                )
        };
    for (prompt, message) in [
        (call("number", r#"{"word": "17"}"#), "17"),
        (call("number", r#"{"word": "x"}"#), "invalid digit found in string"),
        (call("never", ""), "not today"),
        (
            call("slow", ""),
            "the tool failed: it did not answer within 0.001 s; whether it took effect is unknown",
        ),
    ] {
        assert_eq!(answer(tools(), prompt).await.unwrap(), message);
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_function() {
    #[derive(Deserialize, JsonSchema)]
    struct Small {
        #[serde(deserialize_with = "even")]
        number: u8,
    }
    fn even<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
        let number = u8::deserialize(deserializer)?;
        if number % 2 == 0 { Ok(number) } else { Err(serde::de::Error::custom("an odd number")) }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tools = || {
        let seen = Arc::clone(&seen);
        WorkerTools::none().add_function("take", "", move |small: Small| {
            seen.lock().unwrap().push(small.number);
            async { Ok("taken") }
        })
    };
    for (arguments, message) in [
        (r#"{"number": 2}"#, "taken"),
        (r#"{"number": 3}"#, "the arguments do not match the tool: an odd number"),
        (r#"{"number": "two"}"#, "number"),
        ("{}", "number"),
    ] {
        let given = answer(tools(), call("take", arguments)).await.unwrap();
        assert!(given.contains(message), "{arguments}: {given}");
    }
    assert_eq!(*seen.lock().unwrap(), [2]);
}

#[tokio::test]
async fn a_panic_of_a_function_or_of_the_maker_of_its_state_is_the_failure_of_that_item_alone() {
    let tools = WorkerTools::with_state(|index| assert_ne!(index, 2, "no state")).add_function(
        "say",
        "",
        |_: Arc<()>, word: Word| async move {
            assert_ne!(word.word, "b", "no b");
            Ok(word.word)
        },
    );
    let batch = Batch::over(["a", "b", "c", "d"])
        .prompt(|word| call("say", &format!(r#"{{"word": "{word}"}}"#)))
        .worker(caller(tools))
        .on_failure(ReturnError);
    let results = batch.run().await.unwrap().items;
    let reported: Vec<_> = results.iter().map(|result| result.as_deref().map_err(ItemError::kind)).collect();
    let internal = Err(Some(RowErrorKind::Internal));
    assert_eq!(reported, [Ok("a"), internal, internal, Ok("d")]);
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_reported_before_anything_is_sent() {
    let twice = counting().add_function("more", "", |_, _: Nothing| async { Ok("") });
    let text = WorkerTools::none().add_function("text", "", |text: String| async move { Ok(text) });
    let named = |name: &str| WorkerTools::none().add_function(name, "", |_: Nothing| async { Ok("") });
    let of_schema = |schema| {
        WorkerTools::none().add_tool(OfferedTool::new("own", "", schema), |_: Nothing| async { Ok("") })
    };
    for (tools, message) in [
        (WorkerTools::from(twice).and(counting()), "two tools have the name `count`"),
        (text, "the arguments of the tool `text` are not an object"),
        (named(""), "`` cannot be the name of a tool"),
        (named("look up"), "`look up` cannot be the name of a tool"),
        (of_schema(serde_json::json!({"type": "object", "properties": {"a": {"type": "nothing"}}})), "own"),
    ] {
        let problem = problem(tools).await;
        assert!(problem.message.contains(message), "{problem:?}");
    }
}

/// A host without results that counts how often it was closed.
#[derive(Debug, Clone, Default)]
struct Closing(Arc<AtomicUsize>);

impl ToolHost for Closing {
    fn call<'a>(&'a self, _: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        let closed = self.0.load(Ordering::SeqCst);
        ready(Ok(ToolOutput::from_text(format!("closed {closed} times")))).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        ready(()).boxed()
    }
}

#[tokio::test]
async fn a_host_that_the_workers_of_items_share_is_closed_once_at_the_end() {
    let host = Closing::default();
    let tools =
        WorkerTools::from_host(host.clone(), vec![OfferedTool::from_argument_type::<Nothing>("ask", "")]);
    let batch = Batch::over(0..3)
        .prompt(|_| call("ask", ""))
        .worker_for(move |_, _| Ok(caller(tools.clone())))
        .sequential();
    assert_eq!(batch.run().await.unwrap().items, ["closed 0 times"; 3]);
    assert_eq!(host.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn functions_and_hosts_can_be_mixed() {
    let own = WorkerTools::from_host(
        Closing::default(),
        vec![OfferedTool::from_argument_type::<Nothing>("ask", "")],
    );
    let per_item = WorkerTools::per_item(
        |_| Closing::default(),
        vec![OfferedTool::from_argument_type::<Nothing>("again", "")],
    );
    let tools = own.and(counting()).and(per_item);
    let prompt = ["ask", "count", "again"].map(|tool| call(tool, "")).join("\n");
    assert_eq!(answer(tools, prompt).await.unwrap(), "closed 0 times\n1\nclosed 0 times");
}

#[tokio::test]
async fn what_a_worker_of_cards_cannot_say_is_a_problem() {
    for worker in
        [Worker::from_card("card.md").key("k"), Worker::from_card("card.md").base_url("http://localhost")]
    {
        let error = Batch::over([()]).prompt(|()| "").worker(worker).run().await.unwrap_err();
        assert!(error.to_string().contains("its own connection to the provider"), "{error}");
    }
}

#[tokio::test]
async fn functions_keep_the_contract_of_tool_hosts() {
    let under_way = Arc::new(AtomicUsize::new(0));
    struct Open(Arc<AtomicUsize>);
    impl Drop for Open {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let begun = Arc::clone(&under_way);
    let tools = WorkerTools::none()
        .add_function("say", "", |word: Word| async move { Ok(word.word) })
        .add_function("number", "", |word: Word| async move { Ok(word.word.parse::<u8>()?.to_string()) })
        .add_function("hang", "", move |_: Nothing| {
            begun.fetch_add(1, Ordering::SeqCst);
            let open = Open(Arc::clone(&begun));
            async move {
                let never = std::future::pending::<Result<String, FunctionFailure>>().await;
                drop(open);
                never
            }
        })
        .and(counting());
    let word = |tool: &str, word: &str| ToolCase::new(tool, &serde_json::json!({"word": word}));
    let nothing = |tool: &str| ToolCase::new(tool, &serde_json::json!({}));
    let facts = ToolFacts {
        fails: Some(word("number", "x")),
        counts: Some(CountingTool { case: nothing("count"), after_release: AfterRelease::Forgotten }),
        echoes: Some(Box::new(move |number| (word("say", &format!("w{number}.")), format!("w{number}.")))),
        hangs: Some(nothing("hang")),
        under_way: Some(Box::new(move || under_way.load(Ordering::SeqCst))),
        ..ToolFacts::of(word("say", "yes"))
    };
    let host = tools.prepare().unwrap().host;
    assert_eq!(check_tool_host(&*host, &facts).await, Vec::<String>::new());
}
