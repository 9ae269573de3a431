//! Every problem that keeps a batch from starting: its message and its hint.

use futures_util::StreamExt;
use rowmill::{
    Batch, BatchFailureCause, BatchItem, FunctionFailure, LedgerOptions, Money, Price, Problem, ProblemCode,
    ReturnNone, TokenPrices, Worker, WorkerTools,
};
use rowmill_testkit::FakeModel;
use rowmill_types::ToolOutput;

use crate::kit::{MODEL, Room, ask, host, problem, tool};

fn items() -> Batch<usize> {
    Batch::over(0..3_usize)
}

fn numbers() -> Batch<usize, usize> {
    items().worker_fn(async |item: BatchItem<usize>| Ok(*item))
}

fn fake() -> Worker {
    Worker::from_model("fake", FakeModel::default())
}

fn expected_problem(code: ProblemCode, message: &str, hint: &str) -> Problem {
    Problem::new(code, message).hint(hint)
}

#[tokio::test]
async fn a_batch_without_a_worker_is_refused() {
    let hint = "set one with `Batch::worker`, `worker_fn` or `worker_for`";
    let expected = expected_problem(ProblemCode::Usage, "the batch has no worker", hint);
    assert_eq!(problem(&items().prompt(ask).run().await.unwrap_err()), expected);
    // The type of answers is set before the function that returns them.
    let retyped = items().prompt(ask).answer_type::<String>();
    assert_eq!(problem(&retyped.run().await.unwrap_err()), expected);
}

#[tokio::test]
async fn a_missing_prompt_is_reported() {
    let expected =
        expected_problem(ProblemCode::Usage, "the batch has no prompt", "set it with `Batch::prompt`");
    assert_eq!(problem(&items().worker(MODEL).run().await.unwrap_err()), expected);
    let each = items().worker_for(|_, _| Ok(MODEL.into()));
    assert_eq!(problem(&each.run().await.unwrap_err()), expected);
}

#[tokio::test]
async fn max_concurrency_and_batch_size_of_0_are_reported_before_anything_is_called() {
    let expected =
        expected_problem(ProblemCode::Usage, "a batch cannot run 0 items at once", "use at least 1");
    let room = Room::default();
    for by in
        [|batch: Batch<usize, ()>| batch.concurrency(0), |batch: Batch<usize, ()>| batch.item_group_size(0)]
    {
        let entered = room.clone();
        let batch = items().worker_fn(move |_| {
            drop(entered.enter());
            async { Ok(()) }
        });
        assert_eq!(problem(&by(batch).run().await.unwrap_err()), expected);
    }
    assert_eq!(room.ever(), 0);
}

#[tokio::test]
async fn a_ledger_for_a_function_without_an_id_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = numbers().ledger(LedgerOptions::new(folder.path())).run().await.unwrap_err();
    let hint = "set it with `Batch::id`";
    let expected =
        expected_problem(ProblemCode::Usage, "the batch does not say how items are identified", hint);
    assert_eq!(problem(&error), expected);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_limit_on_what_a_function_spends_is_reported() {
    let message = "the spending of a function is not known, so it cannot be limited";
    let expected = expected_problem(
        ProblemCode::Usage,
        message,
        "implement `Model` for it and use `Worker::from_model`",
    );
    let limits = rowmill::BudgetLimits { cost: None, tokens: Some(9) };
    for batch in
        [numbers().max_cost(Money::MAX), numbers().max_total_tokens(9), numbers().item_budget(limits)]
    {
        assert_eq!(problem(&batch.run().await.unwrap_err()), expected);
    }
}

#[tokio::test]
async fn a_cache_without_one_worker_for_all_items_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let expected =
        expected_problem(ProblemCode::Usage, "a cache needs one worker for all items", "use `Batch::worker`");
    assert_eq!(problem(&numbers().cache(folder.path()).run().await.unwrap_err()), expected);
    let each = items().prompt(ask).worker_for(|_, _| Ok(MODEL.into())).cache(folder.path());
    assert_eq!(problem(&each.run().await.unwrap_err()), expected);
}

#[tokio::test]
async fn a_card_with_an_instruction_or_tools_beside_it_is_reported() {
    let message = "an agent card defines its own instruction and tools";
    let hint = "add them to the card, or use `Worker::from_model_name`";
    let expected = expected_problem(ProblemCode::InvalidCard, message, hint);
    let tools = WorkerTools::from_host(host(|_, _| Ok(ToolOutput::from_text(""))), vec![tool("look")]);
    let card = Worker::from_card("card.md");
    for worker in [card.clone().instruction("Be brief."), card.tools(tools)] {
        assert_eq!(problem(&items().prompt(ask).worker(worker).run().await.unwrap_err()), expected);
    }
}

#[tokio::test]
async fn an_own_model_whose_worst_case_is_not_known_is_reported_where_spending_is_limited() {
    let unknown = |what: &str, method: &str| {
        let message = format!("a spending limit needs {what} of `fake`, which is not known");
        expected_problem(ProblemCode::UnknownPrice, &message, &format!("set it with `Worker::{method}`"))
    };
    let dollar = Money::from_pico(1_000_000_000);
    let tokens =
        TokenPrices { input: dollar, cached: dollar, cache_write: dollar, output: dollar, reasoning: dollar };
    let price = Price { tokens, long: None, batch_percent: None };
    let batch = |worker| items().prompt(ask).worker(worker);
    let no_price = batch(fake()).max_cost(Money::MAX).run().await.unwrap_err();
    assert_eq!(problem(&no_price), unknown("the price", "price"));
    let no_bound = batch(fake().price(price)).max_cost(Money::MAX).run().await.unwrap_err();
    assert_eq!(problem(&no_bound), unknown("the maximum answer length", "max_output"));
    let no_bound = batch(fake()).max_total_tokens(10_000).run().await.unwrap_err();
    assert_eq!(problem(&no_bound), unknown("the maximum answer length", "max_output"));
    let known = fake().price(price).max_output(2_000);
    let too_dear = batch(known.clone()).max_cost(Money::from_dollars(1.0).unwrap());
    let message = "one answer of `fake` can cost $2.00, more than the limit of $1.00";
    let expected = expected_problem(
        ProblemCode::UnknownPrice,
        message,
        "limit the length of answers, or raise the limit",
    );
    assert_eq!(problem(&too_dear.run().await.unwrap_err()), expected);
    let enough = batch(known).max_cost(Money::from_dollars(100.0).unwrap()).run().await.unwrap();
    assert_eq!((enough.report.ok, enough.report.cost > Money::ZERO), (3, true));
}

#[tokio::test]
async fn a_worker_that_cannot_be_made_ready_keeps_the_batch_from_starting() {
    let own = Problem::new(ProblemCode::MissingKey, "no key for `fake`").cause("gone").hint("set it");
    let made = own.clone();
    let worker = Worker::from_model_maker("fake", move |_| Err(made.clone()));
    let error = items().prompt(ask).worker(worker).on_failure(ReturnNone).run().await.unwrap_err();
    assert_eq!(problem(&error), own);
    assert_eq!(error.to_string(), "no key for `fake`: gone (set it)");
    assert!(error.report().is_none() && error.partial().is_empty());
    let error = items().prompt(ask).worker("nobody.m").run().await.unwrap_err();
    assert_eq!(problem(&error).code, ProblemCode::InvalidModel);
}

#[tokio::test]
async fn items_that_panic_are_reported_and_never_taken_for_the_end() {
    for known_length in [false, true] {
        let items = (0..300_usize).inspect(|item| assert_ne!(*item, 280, "nothing at {item}"));
        let batch = match known_length {
            true => Batch::over(items),
            false => Batch::over(items.filter(|_| true)),
        };
        let batch = batch.worker_fn(async |item: BatchItem<usize>| Ok::<_, FunctionFailure>(*item));
        let error = batch.on_failure(ReturnNone).run().await.unwrap_err();
        let problem = problem(&error);
        assert_eq!(problem.code, ProblemCode::InputUnreadable);
        assert!(problem.message.starts_with("the items panicked: "), "{}", problem.message);
        assert!(problem.message.contains("nothing at 280"), "{}", problem.message);
        assert_eq!(problem.hint.as_deref(), Some("correct the source of the items"));
        assert!(error.partial().len() >= 280, "{}", error.partial().len());
    }
}

#[tokio::test]
async fn a_stream_that_panics_is_reported_and_never_taken_for_the_end() {
    let items = futures_util::stream::iter(0..9_usize).map(|item| {
        assert_ne!(item, 5, "nothing at {item}");
        item
    });
    let batch = Batch::over_stream(items).worker_fn(async |item: BatchItem<usize>| Ok(*item));
    let error = batch.on_failure(ReturnNone).run().await.unwrap_err();
    let problem = problem(&error);
    assert_eq!(problem.code, ProblemCode::InputUnreadable);
    assert!(problem.message.contains("nothing at 5"), "{}", problem.message);
    assert!(error.report().is_some());
}

#[tokio::test]
async fn a_key_that_is_refused_ends_the_batch_whatever_the_policy() {
    let simulator = rowmill_testkit::Simulator::start_blocking(crate::kit::echoing().key("right"));
    let worker = Worker::from_model_name(MODEL).key("wrong");
    let batch = crate::kit::At::at(items().prompt(ask).worker(worker), &simulator);
    let error = batch.on_failure(ReturnNone).run().await.unwrap_err();
    let BatchFailureCause::Problem(problem) = error.cause() else { unreachable!("{error:?}") };
    assert_eq!(problem.code, ProblemCode::Unauthorized);
    assert!(error.report().is_some());
    let right = crate::kit::At::at(
        items().prompt(ask).worker(Worker::from_model_name(MODEL).key("right")),
        &simulator,
    );
    assert_eq!(right.run().await.unwrap().items.len(), 3);
}
