//! Stopping from outside: in Langroid only an exception ends a batch, and calls in flight have been
//! paid for in vain. Here dropping the future cancels the batch, a `StopHandle` drains or aborts it, a
//! deadline ends it, and every item is accounted for.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::pin::pin;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join, select};
use rowmill::cache::{SqliteAnswerStore, cache_stats};
use rowmill::{
    Batch, BatchFailureCause, BatchItem, InputLocation, InputSpec, Observer, OutputTarget, ReturnError,
    ReturnNone, RowErrorKind, RunControl, RunEnvironment, RunEvent, RunSpec, StopCause, StopHandle, run,
};
use rowmill_core::ports::Model;
use rowmill_store::file::WorkFolder;
use rowmill_testkit::{Simulator, fake_answer};
use rowmill_types::{CallError, Completion, Request};
use rusqlite::Connection;
use tokio::runtime::Builder;
use tokio::sync::{Notify, watch};

use crate::kit::{At, MODEL, Room, accounts, answered, ask, echoing, own};

/// How long something is waited for that is bound to happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A batch whose items never end.
fn endless(room: &Room) -> Batch<usize, ()> {
    let room = room.clone();
    Batch::over(0..100_usize).concurrency(4).worker_fn(move |_| {
        let inside = room.enter();
        async move {
            let _inside = inside;
            std::future::pending().await
        }
    })
}

#[tokio::test]
async fn dropping_the_future_cancels_the_batch_and_leaves_nothing_running() {
    let room = Room::default();
    let run = Box::pin(endless(&room).run());
    drop(select(run, pin!(room.until_ever(4))).await);
    assert_eq!((room.now(), room.ever()), (0, 4));
}

#[tokio::test]
async fn dropping_the_stream_cancels_the_batch_and_leaves_nothing_running() {
    let room = Room::default();
    let mut stream = endless(&room).stream();
    drop(select(pin!(stream.next()), pin!(room.until_ever(4))).await);
    assert_eq!(room.now(), 4);
    drop(stream);
    while room.now() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(room.ever(), 4);
}

/// Answers all prompts but the last, which waits forever.
#[derive(Debug)]
struct AllButTheLast;

impl Model for AllButTheLast {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            match request.messages[0].text == ask(&9) {
                true => std::future::pending().await,
                false => Ok(fake_answer("fine")),
            }
        })
    }
}

#[test]
fn dropping_the_future_waits_for_no_cache_and_loses_none_of_its_answers() {
    let folder = tempfile::tempdir().unwrap();
    let batch =
        |items| Batch::over(items).prompt(ask).worker(own(&Arc::new(AllButTheLast))).cache(folder.path());
    batch(0..1_usize).run_blocking().unwrap();
    // Another run that writes to the same cache for a long time.
    let other = Connection::open(SqliteAnswerStore::file_in(folder.path())).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let room = Room::default();
        let entered = room.clone();
        let run = batch(0..10_usize).on_progress(move |_| drop(entered.enter())).run();
        drop(select(Box::pin(run), pin!(room.until_ever(9))).await);
        // If the batch waited for the cache to close, it would have given up by now.
        other.execute_batch("COMMIT").unwrap();
    });
    drop(runtime);
    assert_eq!(cache_stats(folder.path()).unwrap().entries, 9);
}

/// A run over these rows to a file in the same folder, which is made.
fn run_of_files(folder: &Path, rows: &str) -> RunSpec {
    std::fs::create_dir_all(folder).unwrap();
    let input = folder.join("rows.jsonl");
    std::fs::write(&input, rows).unwrap();
    RunSpec::new(
        InputSpec::new(InputLocation::File(input), None),
        OutputTarget::File(folder.join("out.jsonl")),
    )
}

/// Counts the rows that have ended.
struct Counting(Room);

impl Observer for Counting {
    fn observe(&self, event: &RunEvent<'_>) {
        if let RunEvent::Ended { .. } = event {
            drop(self.0.enter());
        }
    }
}

#[test]
fn dropping_the_future_of_a_run_of_files_waits_for_no_cache_and_loses_none_of_its_answers() {
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().join("cache");
    let simulator = Simulator::start_blocking(echoing().hold_after(9));
    let variables = [("GENERIC_BASE_URL", format!("{}/v1", simulator.url()))];
    let control = RunControl::silent_in(RunEnvironment::from_variables(variables));
    let spec = |name: &str, rows: usize| {
        let rows: String = (0..rows).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        let mut spec = run_of_files(&home.path().join(name), &rows);
        spec.work.model = MODEL.into();
        spec.work.cache = Some(cache.clone());
        spec
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(spec("one", 1), &control)).unwrap();
    // A run that writes to the same cache for long.
    let other = Connection::open(SqliteAnswerStore::file_in(&cache)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    runtime.block_on(async {
        let room = Room::default();
        let control = RunControl { observer: Arc::new(Counting(room.clone())), ..control.clone() };
        let run = Box::pin(run(spec("ten", 10), &control));
        drop(select(run, pin!(room.until_ever(9))).await);
        // Were the end of the cache waited for, it would have given up by now.
        other.execute_batch("COMMIT").unwrap();
    });
    drop(runtime);
    assert_eq!(cache_stats(&cache).unwrap().entries, 9);
}

#[test]
fn dropping_the_future_of_a_run_of_files_keeps_others_away_until_nothing_is_written_any_more() {
    let home = tempfile::tempdir().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    // One failed row with its input, which is more than a pipe takes at once.
    let mut spec = run_of_files(home.path(), &format!("{{\"n\":\"{}\"}}\n", "x".repeat(1 << 20)));
    let (output, errors) = (home.path().join("out.jsonl"), home.path().join("errors"));
    assert!(Command::new("mkfifo").arg(&errors).status().unwrap().success());
    spec.work.model = "silent".into();
    spec.include_input = true;
    spec.error_output = Some(errors.clone());
    let (begun, (go_on, waiting)) = (Arc::new(Notify::new()), mpsc::channel::<()>());
    let reported = Arc::clone(&begun);
    let reader = std::thread::spawn(move || {
        let mut pipe = File::open(errors).unwrap();
        pipe.read_exact(&mut [0]).unwrap();
        reported.notify_one();
        // A test that fails meanwhile closes the channel, and nobody must wait for a reader then.
        waiting.recv().ok();
        let mut rest = String::new();
        pipe.read_to_string(&mut rest).unwrap();
        rest
    });
    let control = RunControl::silent_in(RunEnvironment::from_variables(Vec::<(String, String)>::new()));
    runtime.block_on(async {
        drop(select(Box::pin(run(spec, &control)), pin!(begun.notified())).await);
    });
    let folder = WorkFolder::look_at(&WorkFolder::default_path(&output));
    let held = File::open(&output).unwrap();
    assert!(folder.lock().is_err(), "the ledger is read for what is still to be written");
    assert!(held.try_lock().is_err(), "the output may still get a line");
    go_on.send(()).unwrap();
    let began = Instant::now();
    while folder.lock().is_err() || held.try_lock().is_err() {
        assert!(began.elapsed() < PATIENCE, "the locks are kept for good");
        std::thread::yield_now();
    }
    let rest = reader.join().unwrap();
    assert!(rest.len() > 1 << 20 && rest.ends_with('\n'), "the line is whole: {} bytes", rest.len());
}

#[tokio::test]
async fn dropping_the_future_ends_the_calls_at_the_provider() {
    let simulator = Simulator::start_blocking(echoing().hold_after(0));
    let batch = Batch::over(0..100_usize).prompt(ask).worker(MODEL).at(&simulator).concurrency(3);
    let run = Box::pin(batch.run());
    let held = Box::pin(simulator.wait_until(|stats| stats.in_flight == 3));
    drop(select(run, held).await);
    let stats = simulator.wait_until(|stats| stats.abandoned == 3).await;
    assert_eq!((stats.requests, stats.answers), (3, 0));
}

/// An infinite iterator that reports when it is dropped.
struct Numbers(usize, mpsc::Sender<()>);

impl Iterator for Numbers {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0 += 1;
        Some(self.0)
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.1.send(()).ok();
    }
}

#[tokio::test]
async fn dropping_the_stream_ends_the_thread_that_asks_the_iterator() {
    let (dropped, gone) = mpsc::channel();
    let batch = Batch::over(Numbers(0, dropped)).worker_fn(async |item: BatchItem<usize>| Ok(*item));
    let mut stream = batch.stream();
    // Whichever item ends first.
    let (index, item) = stream.next().await.unwrap().unwrap();
    assert_eq!(item, index + 1);
    drop(stream);
    tokio::task::yield_now().await;
    gone.recv_timeout(PATIENCE).unwrap();
}

#[tokio::test]
async fn a_stream_that_is_not_taken_from_takes_no_further_items() {
    let (dropped, _gone) = mpsc::channel();
    let room = Room::default();
    let entered = room.clone();
    let batch = Batch::over(Numbers(0, dropped)).worker_fn(move |_| {
        drop(entered.enter());
        async { Ok(()) }
    });
    let mut stream = batch.stream();
    stream.next().await.unwrap().unwrap();
    // The maximum number of items ahead of the caller who takes the results.
    room.until_ever(4_096).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(room.ever() <= 4_097, "{}", room.ever());
}

#[tokio::test]
async fn stop_that_drains_finishes_what_is_under_way_and_begins_nothing() {
    let simulator = Simulator::start_blocking(echoing().hold_after(0));
    let stop = StopHandle::default();
    let batch = Batch::over(0..9_usize).prompt(ask).worker(MODEL).at(&simulator).concurrency(3);
    let batch = batch.stop_handle(&stop).on_failure(ReturnNone);
    let end = async {
        simulator.wait_until(|stats| stats.in_flight == 3).await;
        stop.drain();
        simulator.release();
    };
    let (results, ()) = join(batch.run(), end).await;
    let results = results.unwrap();
    assert_eq!(results.report.stopped, Some(StopCause::Interrupted));
    assert_eq!(accounts(&results.report, 9), (3, 0, 0, 6));
    assert_eq!(results.into_iter().flatten().collect::<Vec<_>>(), answered(0..3));
}

#[tokio::test]
async fn stop_that_aborts_drops_what_is_under_way() {
    let (room, stop) = (Room::default(), StopHandle::default());
    let end = async {
        room.until_ever(4).await;
        stop.abort();
    };
    let (results, ()) = join(endless(&room).stop_handle(&stop).on_failure(ReturnError).run(), end).await;
    let results = results.unwrap();
    assert_eq!(accounts(&results.report, 100), (0, 0, 4, 96));
    let cut: Vec<_> = results.items.iter().map(|item| item.as_ref().unwrap_err().kind()).collect();
    assert_eq!(cut[..4], [Some(RowErrorKind::Interrupted); 4]);
    assert!(cut[4..].iter().all(Option::is_none));
    assert_eq!(room.now(), 0);
}

#[tokio::test]
async fn stop_under_raise_is_an_error_with_the_results_so_far() {
    let stop = StopHandle::default();
    let ending = stop.clone();
    let batch = Batch::over(0..9_usize).sequential().stop_handle(&stop).worker_fn(move |item| {
        if *item == 2 {
            ending.drain();
        }
        async move { Ok(*item) }
    });
    let error = batch.run().await.unwrap_err();
    assert_eq!(error.cause(), &BatchFailureCause::Stopped(StopCause::Interrupted));
    assert_eq!(error.to_string(), "the batch ended early: it was stopped");
    assert_eq!(error.partial()[..4], [Some(0), Some(1), Some(2), None]);
}

#[tokio::test]
async fn stop_that_was_used_lets_no_further_batch_begin() {
    let (room, stop) = (Room::default(), StopHandle::default());
    stop.drain();
    let results = endless(&room).stop_handle(&stop).on_failure(ReturnNone).run().await.unwrap();
    assert_eq!(accounts(&results.report, 100), (0, 0, 0, 100));
    assert_eq!(room.ever(), 0);
}

#[tokio::test]
async fn stop_is_not_used_up_by_a_batch_that_ends_by_itself() {
    let stop = StopHandle::default();
    let batch =
        || Batch::over(0..9_usize).worker_fn(async |item: BatchItem<usize>| Ok(*item)).stop_handle(&stop);
    assert!(batch().run_until_first_result().await.unwrap().result.is_some());
    assert_eq!(batch().max_errors(0).on_failure(ReturnNone).run().await.unwrap().report.not_run, 9);
    assert_eq!(batch().run().await.unwrap().items.len(), 9);
}

#[tokio::test]
async fn max_time_ends_the_batch_and_finishes_what_is_under_way() {
    let limit = Duration::from_secs(60);
    let (over, watched) = watch::channel(false);
    let batch = Batch::over(0..9_usize).concurrency(2).deadline(limit).worker_fn(move |item| {
        let mut watched = watched.clone();
        async move {
            if *item == 1 {
                // Both are in progress, and their time is over at once.
                tokio::time::pause();
                tokio::time::advance(limit).await;
            }
            watched.wait_for(|over| *over).await?;
            Ok(*item)
        }
    });
    let batch = batch.on_event(move |event| {
        if matches!(event, RunEvent::Draining) {
            over.send_replace(true);
        }
    });
    let error = batch.run().await.unwrap_err();
    assert_eq!(error.cause(), &BatchFailureCause::Stopped(StopCause::Deadline(limit)));
    assert_eq!(error.to_string(), "the batch ended early: its 60 s have passed");
    assert_eq!(error.partial()[..3], [Some(0), Some(1), None]);
    assert_eq!(accounts(error.report().unwrap(), 9), (2, 0, 0, 7));
}

#[tokio::test]
async fn max_time_of_nothing_begins_nothing() {
    let room = Room::default();
    let batch = endless(&room).deadline(Duration::ZERO).on_failure(ReturnNone);
    let results = batch.run().await.unwrap();
    assert_eq!(results.report.stopped, Some(StopCause::Deadline(Duration::ZERO)));
    assert_eq!((accounts(&results.report, 100), room.ever()), ((0, 0, 0, 100), 0));
}
