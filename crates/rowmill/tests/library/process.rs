//! Processes: in Langroid a second batch in a process can fail because its event loop is closed, a
//! batch cannot run inside a running loop, and every item leaves three log files. Here nothing is
//! global, batches run anywhere, and no file is written unless requested.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::path::Path;
use std::process::Command;

use futures_util::{Stream, StreamExt};
use rowmill::{Batch, BatchItem, ReturnError, Worker};
use tokio::task::JoinSet;

use crate::kit::{At, MODEL, answered, ask, echo};

/// The variable with the provider's address for the child process.
const PROVIDER: &str = "LIBRARY_TEST_PROVIDER";

#[test]
fn a_second_batch_in_one_process_works_like_the_first() {
    let simulator = echo();
    let worker = Worker::from_model_name(MODEL);
    for _ in 0..9 {
        let batch = Batch::over(0..3_usize).prompt(ask).worker(worker.clone()).at(&simulator);
        assert_eq!(batch.run_blocking().unwrap().into_vec(), answered(0..3));
    }
    assert_eq!(simulator.stats().requests, 27);
}

#[test]
fn a_second_batch_works_on_another_runtime_with_the_same_worker_and_limits() {
    let (simulator, worker, limits) =
        (echo(), Worker::from_model_name(MODEL), rowmill::SharedLimits::default());
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let batch =
            Batch::over(0..3_usize).prompt(ask).worker(worker.clone()).shared_limits(&limits).at(&simulator);
        assert_eq!(runtime.block_on(batch.run()).unwrap().into_vec(), answered(0..3));
    }
}

#[test]
fn run_blocking_works_without_a_runtime() {
    let batch = Batch::over(0..3_usize).worker_fn(async |item: BatchItem<usize>| Ok(*item + 1));
    assert_eq!(batch.run_blocking().unwrap().into_vec(), [1, 2, 3]);
}

#[tokio::test]
async fn run_blocking_works_inside_a_running_loop() {
    let simulator = echo();
    let batch = Batch::over(0..3_usize).prompt(ask).worker(MODEL).at(&simulator);
    assert_eq!(batch.run_blocking().unwrap().into_vec(), answered(0..3));
}

#[tokio::test]
async fn run_works_inside_a_running_loop_and_many_at_once() {
    let simulator = echo();
    let batch = || Batch::over(0..3_usize).prompt(ask).worker(MODEL).at(&simulator).run();
    let all = futures_util::future::join_all((0..5).map(|_| batch())).await;
    for results in all {
        assert_eq!(results.unwrap().into_vec(), answered(0..3));
    }
}

fn sent<T: Send>(value: T) -> T {
    value
}

fn streamed<S: Stream + Send + Unpin + 'static>(stream: S) -> S {
    stream
}

#[tokio::test]
async fn a_batch_can_be_spawned_as_a_task() {
    let batch = || Batch::over(0..3_usize).worker_fn(async |item: BatchItem<usize>| Ok(*item));
    #[expect(clippy::disallowed_methods, reason = "programs that use the library spawn like this")]
    let task = tokio::spawn(batch().run());
    assert_eq!(task.await.unwrap().unwrap().into_vec(), [0, 1, 2]);
    let mut tasks = JoinSet::new();
    tasks.spawn(sent(batch().on_failure(ReturnError).run_until_first_result()));
    assert!(tasks.join_next().await.unwrap().unwrap().unwrap().result.is_some());
    let mut stream = streamed(sent(batch()).stream());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut seen = 0;
        while let Some(result) = stream.next().await {
            seen += result.unwrap().1;
        }
        seen
    });
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 3);
    sent(Worker::from_model_name(MODEL));
    sent(rowmill::StopHandle::default());
    sent(rowmill::SharedLimits::default());
}

#[tokio::test]
async fn a_batch_over_no_items_has_no_results() {
    let batch = || Batch::over(Vec::<usize>::new()).worker_fn(async |item: BatchItem<usize>| Ok(*item));
    let results = batch().run().await.unwrap();
    assert_eq!((results.items, results.report.ok, results.report.not_run), (vec![], 0, 0));
    assert!(batch().stream().next().await.is_none());
}

/// Code of the child process: two batches, one of them with failures.
#[test]
#[ignore = "runs in a process of its own"]
fn two_batches_in_a_process_of_their_own() {
    let provider = std::env::var_os(PROVIDER).unwrap().into_string().unwrap();
    let prompt = |item: &usize| if *item == 1 { "[[400]]".to_owned() } else { ask(item) };
    for _ in 0..2 {
        let config = rowmill::ProviderConfig { base_url: Some(provider.clone()), ..Default::default() };
        let batch = Batch::over(0..5_usize).prompt(prompt).worker(MODEL);
        let batch = batch.providers([("generic".to_owned(), config)].into());
        let results = batch.on_failure(ReturnError).run_blocking().unwrap();
        assert_eq!(results.report.ok, 4);
    }
}

/// The names of everything in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn nothing_is_written_and_nothing_is_reported_unless_it_is_asked_for() {
    let (simulator, place) = (echo(), tempfile::tempdir().unwrap());
    let folders = ["work", "tmp", "home"].map(|name| place.path().join(name));
    folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::two_batches_in_a_process_of_their_own", "--ignored", "--nocapture"])
        .current_dir(&folders[0])
        .env("TMPDIR", &folders[1])
        .env("HOME", &folders[2])
        .env(PROVIDER, format!("{}/v1", simulator.url()))
        .output()
        .unwrap();
    let (message, wrong) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && message.contains("1 passed"), "{message}{wrong}");
    assert_eq!(wrong, "");
    assert_eq!(simulator.stats().requests, 10);
    for folder in folders {
        assert_eq!(names(&folder), Vec::<String>::new(), "{}", folder.display());
    }
}
