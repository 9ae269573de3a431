//! Rows with tools: what is recorded when, what is called at once, and what a row may spend.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::agent::{
    AgentDefinition, AgentGraph, AgentGraphTool, AgentKind, AgentSettings, StepEvent, ToolCallAction,
};
use rowmill_core::answer_key::answer_key;
use rowmill_core::limits::{Budget, BudgetLimits, CallParallelism, RunPaceSettings, Spend};
use rowmill_core::ports::{
    HookCall, HookRunner, RowStepEvent, ToolFailure, ToolHost, ToolPermit, ToolRequest,
};
use rowmill_core::record::CallReport;
use rowmill_core::redact::Redactor;
use rowmill_engine::{ModelEndpoint, ToolSetup, execute_run};
use rowmill_testkit::{FakeModel, fake_answer};
use rowmill_types::{
    CallTiming, Completion, FinishReason, Message, Money, RowId, Secret, TokenUsage, ToolCall, ToolOutput,
    ToolSpec,
};
use serde_json::{Value, json};

use crate::support::{Bench, ENDPOINT, FakeLedger, Log, SHARE, endpoint, model_role, paced};

/// A host with the tools `look`, `write`, `panic`, `hang` and `long`.
#[derive(Debug)]
struct FakeTools(Log);

impl ToolHost for FakeTools {
    fn wait_until_ready<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<ToolPermit, ToolFailure>> {
        Box::pin(async move {
            let failed = |message: &str| ToolFailure { message: message.to_owned(), may_have_run: false };
            match request.arguments {
                "{\"waits\":1}" => tokio::time::sleep(Duration::from_secs(3_600)).await,
                "{\"refused\":1}" => return Err(failed("connection refused")),
                _ => {}
            }
            Ok(ToolPermit::default())
        })
    }

    fn call<'a>(&'a self, request: ToolRequest<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move {
            self.0.add(format!("call {} for {}", request.tool, request.row));
            match request.tool {
                "panic" => panic!("the tool broke"),
                "hang" => std::future::pending().await,
                "long" => Ok(ToolOutput::from_text("ä".repeat(1_000))),
                tool => Ok(ToolOutput::from_text(format!("{tool} gave {}", request.arguments))),
            }
        })
    }

    fn release_row(&self, row: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.add(format!("release {row}"));
        })
    }
}

fn tool(name: &str) -> AgentGraphTool {
    AgentGraphTool {
        spec: ToolSpec { name: name.into(), description: None, schema: json!({"type": "object"}) },
        host_name: name.into(),
        arguments: None,
        route: ToolCallAction::Call,
        idempotent: name == "look",
        timeout: Duration::from_secs(30),
    }
}

fn calls(names: &[&str]) -> Completion {
    let call = |(index, name): (usize, &&str)| ToolCall {
        id: format!("c{index}"),
        name: (*name).into(),
        arguments: "{}".into(),
    };
    Completion { calls: names.iter().enumerate().map(call).collect(), ..fake_answer("") }
}

/// One agent with every tool; `model` answers for it.
fn bench(rows: usize, model: FakeModel) -> (Bench, Arc<FakeModel>) {
    let model = Arc::new(model);
    let mut bench = Bench::new(rows, model.clone());
    let tools: Vec<AgentGraphTool> = ["look", "write", "panic", "hang", "long"].map(tool).into();
    let agent =
        AgentSettings { tools: (0..tools.len()).collect(), max_iterations: 9, ..AgentSettings::default() };
    let agent_index =
        AgentDefinition { name: "agent".into(), description: String::new(), kind: AgentKind::Agent(agent) };
    bench.row_worker().graph = Arc::new(AgentGraph::new(vec![agent_index], tools, 0, None).unwrap());
    let host = Arc::new(FakeTools(bench.log()));
    bench.row_worker().tools = Some(ToolSetup { host, hooks: None, result_limit: 101 });
    (bench, model)
}

#[tokio::test(start_paused = true)]
async fn a_row_is_on_record_before_its_tools_are_released_and_turns_before_what_follows_from_them() {
    let model =
        FakeModel::default().script("1", vec![Ok(calls(&["look", "write"])), Ok(fake_answer("done"))]);
    let (mut bench, _) = bench(1, model);
    bench.plan.worker.checkpoint = true;
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"]);
    let log = &watched.log;
    let order = ["turn answered of 1", "turn tool_started of 1", "call write for 1", "ledger 1", "release 1"];
    let places: Vec<usize> = order.iter().map(|line| log.place(line)).collect();
    assert!(places.is_sorted(), "{:?}", log.lines());
    let kept: Vec<String> = log.lines().into_iter().filter(|line| line.starts_with("turn ")).collect();
    assert_eq!(
        kept,
        ["turn answered of 1", "turn tool_ended of 1", "turn tool_started of 1", "turn tool_ended of 1"],
        "a tool that may run twice needs no mark, and of the last turn the record says everything"
    );
}

#[tokio::test(start_paused = true)]
async fn without_checkpoints_no_turn_is_written() {
    let model = FakeModel::default().script("1", vec![Ok(calls(&["write"])), Ok(fake_answer("done"))]);
    let (plan, watched) = bench(1, model).0.split();
    execute_run(plan).await.unwrap();
    assert!(!watched.log.lines().iter().any(|line| line.starts_with("turn ")));
    assert_eq!(watched.outcomes(), ["ok"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_panics_or_says_too_much_is_the_trouble_of_its_row_alone() {
    let model = FakeModel::default()
        .script("1", vec![Ok(calls(&["hang"])), Ok(fake_answer("went on"))])
        .script("2", vec![Ok(calls(&["panic"])), Ok(fake_answer("never"))])
        .script("3", vec![Ok(calls(&["long"])), Ok(fake_answer("went on"))]);
    let (bench, model) = bench(4, model);
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok", "InternalError", "ok", "ok"]);
    let reported = |prompt: &str| {
        let seen = model.seen();
        let last = seen.iter().rev().find(|request| request.messages[0].text == prompt).unwrap();
        last.messages.last().unwrap().text.clone()
    };
    assert_eq!(reported("1"), "the tool did not answer within 240 s; whether it took effect is unknown");
    assert_eq!(reported("3"), format!("{}\n[cut: the first 100 of 2000 bytes]", "ä".repeat(50)));
    let message = watched.envelopes()[1]["error"]["message"].clone();
    assert_eq!(message, "the worker panicked: the tool broke");
}

#[tokio::test(start_paused = true)]
async fn a_row_never_spends_more_than_it_may() {
    let turns: Vec<_> = (0..9).map(|_| Ok(calls(&["look"]))).collect();
    let (mut bench, model) = bench(1, FakeModel::default().script("1", turns));
    let bounded = ModelEndpoint { max_output: Some(100), ..endpoint("model", model.clone(), ENDPOINT) };
    bench.row_worker().model_roles = vec![model_role(vec![bounded])];
    bench.plan.worker.row_budget = BudgetLimits { cost: None, tokens: Some(680) };
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["RowLimit"]);
    let used: u64 = 10 * model.seen().len() as u64;
    assert!(used <= 680 && !model.seen().is_empty(), "{used}");
    let message = watched.envelopes()[0]["error"]["message"].to_string();
    assert!(message.contains("of 680 (`max_row_tokens`)"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_the_budget_cut_is_asked_again_before_any_tool_is_called() {
    // The usage of the truncated answer is unknown, so it counts in full.
    let cut = Completion { finish: FinishReason::Length, usage: None, ..calls(&["write"]) };
    let script = vec![Ok(cut), Ok(calls(&["look"])), Ok(fake_answer("done"))];
    let (mut bench, model) = bench(1, FakeModel::default().script("1", script));
    let limited = ModelEndpoint {
        max_output: Some(100_000),
        output_caps: Some(Arc::default()),
        ..endpoint("model", model.clone(), ENDPOINT)
    };
    bench.row_worker().model_roles = vec![model_role(vec![limited])];
    bench.plan.budget = Budget::new(BudgetLimits { cost: None, tokens: Some(200_000) }, Spend::default());
    bench.plan.worker.checkpoint = true;
    bench.plan.worker.retry.retries = 0;
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((watched.outcomes(), end.tally.calls), (vec!["ok".to_owned()], 3));
    let seen = model.seen();
    let message: Vec<usize> = seen.iter().map(|request| request.messages.len()).collect();
    assert_eq!(message, [1, 1, 3], "what was cut is not part of the conversation");
    let caps: Vec<u64> = seen.iter().map(|request| request.output_cap.unwrap()).collect();
    assert_eq!((caps[0], caps[1]), (16_384, 65_536));
    assert_ne!(seen[0].key, seen[1].key, "they are two requests");
    let lines = watched.log.lines();
    let called: Vec<_> = lines.iter().filter(|line| line.starts_with("call ")).collect();
    assert_eq!(called, ["call look for 1"]);
    assert!(end.spent.tokens >= 16_384, "{:?}", end.spent);
}

#[tokio::test(start_paused = true)]
async fn a_row_goes_on_with_its_own_turns_wherever_it_is_now_and_only_if_it_asks_the_same() {
    for (asked, messages) in [("2", 3), ("something else", 1)] {
        let (mut bench, model) = bench(2, FakeModel::default());
        let ledger = bench.ledger();
        let answered = StepEvent::ModelAnswered {
            node: 0,
            prompt: None,
            completion: calls(&["look"]),
            note: None,
            calls: Vec::new(),
        };
        let mut step_event = Vec::new();
        answered.write(&mut step_event);
        // It was the seventh row at that time.
        let (row, id) = (7, RowId::Number(2));
        let asked = answer_key("", &[Message::user(asked)]);
        let mut line = Vec::new();
        RowStepEvent { row, id: id.clone(), answer_key: asked, step_event }.write(&mut line);
        bench.plan.resume.add_step_event_record(&id, ledger.holds(&line));
        bench.plan.ledger = ledger.open();
        bench.plan.worker.checkpoint = true;
        let (plan, watched) = bench.split();
        execute_run(plan).await.unwrap();
        assert_eq!(watched.outcomes(), ["ok", "ok"]);
        let seen: Vec<(String, usize)> = model
            .seen()
            .iter()
            .map(|request| (request.messages[0].text.clone(), request.messages.len()))
            .collect();
        assert!(seen.contains(&("1".into(), 1)) && seen.contains(&("2".into(), messages)), "{seen:?}");
        assert_eq!(seen.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_counts_its_own_calls_and_not_those_of_turns_before_it() {
    let (mut bench, model) = bench(1, FakeModel::default());
    let usage = Some(TokenUsage { input: 7, output: 3, ..TokenUsage::default() });
    let paid = CallReport {
        error: None,
        status: None,
        timing: CallTiming { first_token: None, response: Duration::from_secs(1) },
        usage,
        raw_usage: None,
        model: None,
        service_tier: None,
        cost: Some(Money::from_pico(500)),
        agent: None,
        hosted_tools: None,
        output_cap: None,
        batch: None,
        beside_jobs: false,
    };
    let completion = calls(&["look"]);
    let answered =
        StepEvent::ModelAnswered { node: 0, prompt: None, completion, note: None, calls: vec![paid] };
    let ledger = bench.ledger();
    recall(&mut bench, &ledger, "1", &answered);
    bench.plan.ledger = ledger.open();
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((watched.outcomes(), model.seen().len()), (vec!["ok".to_owned()], 1));
    let numbers = end.tally.summary_numbers(end.duration);
    assert_eq!((numbers.calls.made, numbers.cost.usd, numbers.usage.total_tokens), (1, Money::ZERO, 13));
}

/// Lets the run continue from a turn of the row with this number.
fn recall(bench: &mut Bench, ledger: &FakeLedger, number: &str, happened: &StepEvent) {
    let mut step_event = Vec::new();
    happened.write(&mut step_event);
    let (row, asked) = (number.parse().unwrap(), answer_key("", &[Message::user(number)]));
    let id = RowId::Number(row);
    let mut line = Vec::new();
    RowStepEvent { row, id: id.clone(), answer_key: asked, step_event }.write(&mut line);
    bench.plan.resume.add_step_event_record(&id, ledger.holds(&line));
    bench.plan.worker.checkpoint = true;
}

/// One call with these arguments.
fn call_with(tool: &str, arguments: &str) -> Completion {
    let mut completion = calls(&[tool]);
    completion.calls[0].arguments = arguments.to_owned();
    completion
}

#[tokio::test(start_paused = true)]
async fn waiting_for_its_turn_is_not_the_tools_time() {
    let model = FakeModel::default()
        .script("1", vec![Ok(call_with("write", "{\"waits\":1}")), Ok(fake_answer("done"))]);
    let (mut bench, model) = bench(1, model);
    bench.plan.worker.row_timeout = Some(Duration::from_secs(60));
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok"], "an hour in the queue is no timeout");
    let message = model.seen().last().unwrap().messages.last().unwrap().text.clone();
    assert_eq!(message, "write gave {\"waits\":1}");
    let took: Vec<String> = watched.log.lines().into_iter().filter(|line| line.contains(" took ")).collect();
    assert_eq!(took, ["\"write\" took 0.0 ms"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_left_is_a_certain_failure_and_leaves_no_mark() {
    let model = FakeModel::default()
        .script("1", vec![Ok(call_with("write", "{\"refused\":1}")), Ok(fake_answer("done"))]);
    let (mut bench, model) = bench(1, model);
    bench.plan.worker.checkpoint = true;
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    let message = model.seen().last().unwrap().messages.last().unwrap().text.clone();
    assert_eq!(message, "the tool failed: connection refused");
    let kept: Vec<String> =
        watched.log.lines().into_iter().filter(|line| line.starts_with("turn ")).collect();
    assert_eq!(kept, ["turn answered of 1", "turn tool_ended of 1"]);
}

#[tokio::test(start_paused = true)]
async fn secrets_are_in_no_result_no_error_and_no_kept_turn() {
    const SECRET: &str = "sk-planted-4711";
    let model = FakeModel::default().script(
        "1",
        vec![
            Ok(call_with("look", &format!("{{\"k\":\"{SECRET}\"}}"))),
            Ok(fake_answer(format!("it is {SECRET}"))),
        ],
    );
    let (mut bench, model) = bench(1, model);
    bench.plan.worker.checkpoint = true;
    bench.plan.worker.redactor = Redactor::new([&Secret::new(SECRET)]).unwrap();
    let redactor = bench.plan.worker.redactor.clone();
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.envelopes()[0]["result"], "it is ***");
    assert!(
        redactor.replaced_count() >= 3,
        "the call and what it gave were kept, too: {}",
        redactor.replaced_count()
    );
    let message = model.seen().last().unwrap().messages.last().unwrap().text.clone();
    assert!(message.contains(SECRET), "the model is told what the tool gave: {message}");
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_aborted_while_its_tool_runs_tells_everything_that_was_paid_for() {
    for checkpoint in [false, true] {
        let turns = vec![Ok(calls(&["look"])), Ok(calls(&["hang"]))];
        let (mut bench, model) = bench(1, FakeModel::default().script("1", turns));
        bench.plan.worker.checkpoint = checkpoint;
        let stop = bench.plan.stop.clone();
        let (plan, watched) = bench.split();
        let log = watched.log.clone();
        let (end, ()) = tokio::join!(execute_run(plan), async {
            log.until(|log| log.lines().iter().any(|line| line == "call hang for 1")).await;
            stop.abort();
        });
        let end = end.unwrap();
        assert_eq!((model.seen().len(), end.unknown_rows), (2, 1));
        let numbers = end.tally.summary_numbers(end.duration);
        assert_eq!((numbers.calls.made, numbers.calls.outcome_unknown), (2, 0), "no model call was cut");
        assert_eq!(numbers.usage.total_tokens, 20);
        let envelope = &watched.envelopes()[0];
        assert_eq!(envelope["error"]["type"], "Interrupted");
        let message =
            "the run was aborted while the tool `hang` was running; it is unknown whether it took effect";
        assert_eq!(
            (&envelope["error"]["message"], &envelope["error"]["attempts"]),
            (&json!(message), &json!(2))
        );
        let took = watched.log.lines().into_iter().filter(|line| line.contains(" took "));
        assert_eq!(took.collect::<Vec<_>>(), ["\"look\" took 0.0 ms", "\"hang\" took 0.0 ms"]);
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_is_made_once_the_time_of_a_row_is_used_up() {
    let turns = vec![Ok(calls(&["hang"])), Ok(fake_answer("too late"))];
    let (mut bench, model) = bench(1, FakeModel::default().script("1", turns));
    bench.plan.worker.row_timeout = Some(Duration::from_secs(5));
    let (plan, watched) = bench.split();
    let end = execute_run(plan).await.unwrap();
    assert_eq!((watched.outcomes(), model.seen().len()), (vec!["Timeout".to_owned()], 1));
    assert_eq!((end.tally.calls, end.tally.unknown_calls), (1, 0));
    let message = watched.envelopes()[0]["error"]["message"].clone();
    assert_eq!(message, "the 5 s of `row_timeout` were used up before the next call");
}

/// Hooks: those of the second row wait until the first row has ended.
#[derive(Debug)]
struct OneProcess {
    log: Log,
}

impl HookRunner for OneProcess {
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Option<Value>, String>> {
        Box::pin(async move {
            while call.row == 2 && !self.log.lines().iter().any(|line| line == "release 1") {
                tokio::task::yield_now().await;
            }
            Ok(None)
        })
    }
}

/// Otherwise this test never ends.
#[tokio::test]
async fn a_row_whose_hook_waits_for_a_process_keeps_no_ticket_that_the_row_with_the_process_needs() {
    let model = FakeModel::default().script("1", vec![Ok(calls(&["look"])), Ok(fake_answer("done"))]);
    let (mut bench, model) = bench(2, model);
    let one_call = paced(RunPaceSettings { parallel: CallParallelism::AtMost(1), ..SHARE });
    bench.row_worker().model_roles = vec![model_role(vec![endpoint("model", model, one_call)])];
    let hooks = OneProcess { log: bench.log() };
    bench.row_worker().tools.as_mut().unwrap().hooks = Some(Arc::new(hooks));
    let (plan, watched) = bench.split();
    execute_run(plan).await.unwrap();
    assert_eq!(watched.outcomes(), ["ok", "ok"]);
}
