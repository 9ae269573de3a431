//! Many batches in one process: they share the limits of a key and a handful of threads.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::future::{join, join_all, select};
use rowmill::{Batch, BatchItem, SharedLimits, Worker};
use rowmill_testkit::Simulator;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::kit::{At, MODEL, answered, ask, echoing};

const RUNS: usize = 200;
const ITEMS: usize = 3;

/// Runtime threads for blocking work: far fewer than there are runs.
const BLOCKING: usize = 4;

/// How long somebody waits for what is bound to happen, so that a test in which it does not happen ends by itself.
const PATIENCE: Duration = Duration::from_secs(30);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING).build().unwrap()
}

/// The number of threads in this process.
fn threads() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap();
    line.trim().parse().unwrap()
}

/// The items of a run.
fn items(run: usize) -> std::ops::Range<usize> {
    run * ITEMS..(run + 1) * ITEMS
}

#[test]
fn two_hundred_batches_at_once_use_the_limit_of_their_key_once_and_few_threads() {
    // Fewer tokens than all of them need: the last calls wait until there is room again.
    let limit = (RUNS * ITEMS) as u64 - 20;
    let limits = rowmill_testkit::SimulatedLimits {
        requests: Some(limit),
        ..rowmill_testkit::SimulatedLimits::default()
    };
    let simulator = Simulator::start_blocking(echoing().key("of everybody").limits(limits).hold_after(0));
    let (account, begun, before) = (SharedLimits::default(), Arc::new(AtomicUsize::new(0)), threads());
    let runs = (0..RUNS).map(|run| {
        let begun = Arc::clone(&begun);
        let prompt = move |item: &usize| {
            begun.fetch_add(usize::from(*item == items(run).start), Ordering::SeqCst);
            ask(item)
        };
        let worker = Worker::from_model_name(MODEL).key("of everybody");
        Batch::over(items(run)).prompt(prompt).worker(worker).at(&simulator).shared_limits(&account).run()
    });
    let watched = async {
        // Every batch has its first item ready, and no call has been answered.
        while begun.load(Ordering::SeqCst) < RUNS || simulator.stats().in_flight == 0 {
            yield_now().await;
        }
        let held = threads();
        simulator.release();
        held
    };
    let (results, held) = runtime().block_on(join(join_all(runs), watched));
    for (run, results) in results.into_iter().enumerate() {
        assert_eq!(results.unwrap().into_vec(), answered(items(run)), "run {run}");
    }
    let stats = simulator.stats();
    assert_eq!((stats.answers, stats.rate_limited), ((RUNS * ITEMS) as u64, 0));
    assert!(held <= before + BLOCKING, "{held} threads for {RUNS} runs, {before} before");
}

#[test]
fn batches_whose_items_are_still_to_come_hold_no_thread() {
    let (begun, before) = (AtomicUsize::new(0), threads());
    let (senders, runs): (Vec<_>, Vec<_>) = (0..RUNS)
        .map(|_| {
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
                Some((receiver.recv().await?, receiver))
            });
            (sender, Batch::over_stream(stream).worker_fn(async |item: BatchItem<usize>| Ok(*item + 1)).run())
        })
        .unzip();
    let runs = runs.into_iter().map(|run| async {
        begun.fetch_add(1, Ordering::SeqCst);
        run.await
    });
    let watched = async {
        while begun.load(Ordering::SeqCst) < RUNS {
            yield_now().await;
        }
        let held = threads();
        for (run, sender) in senders.into_iter().enumerate() {
            sender.send(run).await.unwrap();
        }
        held
    };
    let (results, held) = runtime().block_on(join(join_all(runs), watched));
    for (run, results) in results.into_iter().enumerate() {
        assert_eq!(results.unwrap().into_vec(), [run + 1]);
    }
    assert!(held <= before + BLOCKING, "{held} threads for {RUNS} runs, {before} before");
}

#[test]
fn a_function_that_computes_holds_up_neither_its_own_batch_nor_another() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = std::sync::Mutex::new(receiver);
    // It simulates a computation that lasts until the other batch has ended.
    let slow = Batch::over([7]).worker_fn(move |item: BatchItem<i32>| {
        receiver.lock().unwrap().recv_timeout(PATIENCE).expect("the other batch should end meanwhile");
        async move { Ok(*item) }
    });
    let quick = async {
        let results = Batch::over(0..500).worker_fn(async |item: BatchItem<i32>| Ok(*item)).run().await;
        // Nobody listens any more where the wait was given up.
        sender.send(()).ok();
        results
    };
    let (slow, quick) = runtime.block_on(join(slow.run(), quick));
    assert_eq!((slow.unwrap().items, quick.unwrap().items.len()), (vec![7], 500));
}

#[test]
fn an_output_that_computes_holds_up_neither_its_own_batch_nor_another() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (begun, (sender, receiver)) = (Arc::new(Notify::new()), mpsc::channel::<()>());
    let (reported, receiver) = (Arc::clone(&begun), std::sync::Mutex::new(receiver));
    // It computes, so to speak, until the other batch has ended.
    let slow = Batch::over([7]).worker_fn(async |item: BatchItem<i32>| Ok(*item)).map_answers(move |done| {
        reported.notify_one();
        receiver.lock().unwrap().recv_timeout(PATIENCE).expect("the other batch should end meanwhile");
        done.answer
    });
    let quick = async {
        // It must not end before the output begins.
        begun.notified().await;
        let results = Batch::over(0..500).worker_fn(async |item: BatchItem<i32>| Ok(*item)).run().await;
        sender.send(()).ok();
        results
    };
    let (slow, quick) = runtime.block_on(join(slow.run(), quick));
    assert_eq!((slow.unwrap().items, quick.unwrap().items.len()), (vec![7], 500));
}

/// Items that never come; it reports when they are requested.
struct Silent(Arc<Notify>, mpsc::Receiver<usize>);

impl Iterator for Silent {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0.notify_one();
        self.1.recv().ok()
    }
}

#[test]
fn a_runtime_that_ends_does_not_wait_for_an_iterator_that_gives_nothing() {
    let ((sender, receiver), asked) = (mpsc::channel(), Arc::new(Notify::new()));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let items = Silent(Arc::clone(&asked), receiver);
    runtime.block_on(async {
        let run = Box::pin(Batch::over(items).worker_fn(async |item: BatchItem<usize>| Ok(*item)).run());
        drop(select(run, Box::pin(asked.notified())).await);
    });
    drop(runtime);
    drop(sender);
}
