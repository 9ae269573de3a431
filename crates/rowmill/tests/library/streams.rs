//! Results one by one, which Langroid does not have: each with the index of its item, in the order in
//! which items end, with the same policies.

use futures_util::StreamExt;
use rowmill::{
    Batch, BatchFailureCause, BatchItem, FunctionFailure, LedgerOptions, ReturnError, ReturnNone, StopCause,
    StopHandle, Worker, WorkerTools,
};

use crate::kit::{At, MODEL, accounts, answered, ask, echo, host, problem, raised, tool};

fn unless_two() -> Batch<usize, usize> {
    Batch::over(0..5_usize).sequential().worker_fn(async |item: BatchItem<usize>| match *item {
        2 => Err(FunctionFailure::new("two is no good")),
        other => Ok(other * 10),
    })
}

#[tokio::test]
async fn a_stream_under_raise_ends_with_the_error_and_has_its_report() {
    let mut stream = unless_two().stream();
    assert!(stream.report().is_none());
    assert_eq!(stream.next().await.unwrap().unwrap(), (0, 0));
    assert_eq!(stream.next().await.unwrap().unwrap(), (1, 10));
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(raised(&error), (2, "two is no good".to_owned()));
    // The results were delivered already.
    assert!(error.partial().is_empty());
    assert!(stream.next().await.is_none());
    assert_eq!(accounts(stream.report().unwrap(), 5), (2, 1, 0, 2));
}

#[tokio::test]
async fn a_stream_under_return_none_and_return_exception_gives_every_item() {
    let nones: Vec<_> = unless_two().on_failure(ReturnNone).stream().map(Result::unwrap).collect().await;
    assert_eq!(nones, [(0, Some(0)), (1, Some(10)), (2, None), (3, Some(30)), (4, Some(40))]);
    let errors: Vec<_> = unless_two().on_failure(ReturnError).stream().map(Result::unwrap).collect().await;
    assert_eq!(errors.len(), 5);
    assert_eq!(errors[2].1.as_ref().unwrap_err().to_string(), "item 2 failed: two is no good");
}

#[tokio::test]
async fn a_stream_that_cannot_start_gives_the_problem_and_nothing_else() {
    let mut stream = Batch::over(0..5_usize).prompt(ask).stream();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(problem(&error).message, "the batch has no worker");
    assert!(stream.next().await.is_none());
    assert!(stream.report().is_none());
}

#[tokio::test]
async fn a_stream_that_is_stopped_leaves_out_items_that_were_not_worked_on() {
    let stop = StopHandle::default();
    let draining = stop.clone();
    let batch = Batch::over(0..5_usize).sequential().stop_handle(&stop).worker_fn(move |item| {
        if *item == 1 {
            draining.drain();
        }
        async move { Ok(*item) }
    });
    let mut stream = batch.on_failure(ReturnNone).stream();
    let mut seen = Vec::new();
    while let Some(result) = stream.next().await {
        seen.push(result.unwrap());
    }
    assert_eq!(seen, [(0, Some(0)), (1, Some(1))]);
    let report = stream.report().unwrap();
    assert_eq!(report.stopped, Some(StopCause::Interrupted));
    assert_eq!(accounts(report, 5), (2, 0, 0, 3));
    let mut stopped = unless_two().stop_handle(&stop).stream();
    let error = stopped.next().await.unwrap().unwrap_err();
    assert_eq!(error.cause(), &BatchFailureCause::Stopped(StopCause::Interrupted));
}

#[tokio::test]
async fn a_stream_that_is_dropped_keeps_what_it_gave_in_its_ledger() {
    let (simulator, folder) = (echo(), tempfile::tempdir().unwrap());
    let batch = || {
        let batch = Batch::over(0..20_usize).prompt(ask).worker(MODEL).at(&simulator).concurrency(2);
        batch.ledger(LedgerOptions::resume(folder.path()))
    };
    let mut stream = batch().stream();
    for _ in 0..5 {
        stream.next().await.unwrap().unwrap();
    }
    drop(stream);
    let results = loop {
        // The cancelled task releases its ledger as soon as it runs.
        tokio::task::yield_now().await;
        if let Ok(results) = batch().run().await {
            break results;
        }
    };
    assert_eq!(results.items, answered(0..20));
    assert!(results.report.kept >= 5, "{}", results.report.kept);
}

#[tokio::test]
async fn a_stream_gives_what_tools_and_models_came_to() {
    let simulator = echo();
    let host = host(|_, _| Ok(rowmill_types::ToolOutput::from_text("never called")));
    let worker = Worker::from_model_name(MODEL).tools(WorkerTools::from_host(host, vec![tool("look")]));
    let stream = Batch::over(0..9_usize).prompt(ask).worker(worker).at(&simulator).stream();
    let mut results: Vec<(usize, String)> = stream.map(Result::unwrap).collect().await;
    results.sort_unstable();
    assert_eq!(results, (0..9).zip(answered(0..9)).collect::<Vec<_>>());
}
