//! Several stores, threads and processes with one file.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

use rowmill_core::ports::AnswerStore;

use super::{answer, fill, key, open, open_listening, other_program, text, texts};
use crate::answers::PruneSpec;

const EACH: u64 = 5_000;

/// Names the folder, and the role of a process that a test has started.
const FOLDER: &str = "ROWMILL_TEST_STORE_FOLDER";
const PART: &str = "ROWMILL_TEST_STORE_PART";

fn keep_part(store: &dyn AnswerStore, part: u64) {
    for number in part * EACH..(part + 1) * EACH {
        store.store(key(number), &answer(&text(number, 300)));
    }
}

#[tokio::test]
async fn two_stores_that_write_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let start = Barrier::new(2);
    // Both find no file and create it.
    thread::scope(|scope| {
        for part in 0..2 {
            let (folder, start) = (folder.path(), &start);
            scope.spawn(move || {
                start.wait();
                keep_part(&open(folder), part);
            });
        }
    });
    let store = open(folder.path());
    for (number, found) in texts(&store, 0..2 * EACH).await.into_iter().enumerate() {
        assert_eq!(found, Some(text(number as u64, 300)));
    }
}

#[test]
fn a_store_that_is_made_while_another_opens_it_is_known_by_both() {
    // Only half of the marks are set for a short moment: many attempts hit it.
    for _ in 0..200 {
        let folder = tempfile::tempdir().unwrap();
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    drop(open(folder.path()));
                });
            }
        });
    }
}

/// This test starts its own binary again as one of the two processes.
#[tokio::test]
async fn two_processes_that_write_at_once_lose_nothing() {
    if let (Some(folder), Some(part)) = (std::env::var_os(FOLDER), std::env::var_os(PART)) {
        let part = part.into_string().unwrap().parse().unwrap();
        return keep_part(&open(&PathBuf::from(folder)), part);
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, module) = module_path!().split_once("::").unwrap();
    let name = format!("{module}::two_processes_that_write_at_once_lose_nothing");
    let start = |part: u64| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &name, "--test-threads=1"]).stdout(Stdio::null());
        command.env(FOLDER, folder.path()).env(PART, part.to_string()).spawn().unwrap()
    };
    let mut processes = [start(0), start(1)];
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    let store = open(folder.path());
    for (number, found) in texts(&store, 0..2 * EACH).await.into_iter().enumerate() {
        assert_eq!(found, Some(text(number as u64, 300)));
    }
}

#[tokio::test]
async fn a_store_is_pruned_while_another_writes_and_both_go_on() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 500, 2_000);
    let (pruner, writer) = (open(folder.path()), open(folder.path()));
    thread::scope(|scope| {
        scope.spawn(|| keep_part(&writer, 1));
        for _ in 0..5 {
            pruner.prune(PruneSpec { max_bytes: Some(500_000), ..PruneSpec::default() }).unwrap();
        }
    });
    writer.store(key(1), &answer("after it"));
    writer.stats().unwrap();
    assert_eq!(texts(&pruner, 1..2).await, [Some("after it".to_owned())]);
    assert_eq!(texts(&writer, 1..2).await, [Some("after it".to_owned())]);
}

#[tokio::test]
async fn what_one_store_has_written_another_finds() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(folder.path()), open(folder.path()));
    assert_eq!(texts(&other, 1..2).await, [None]);
    one.store(key(1), &answer("shared"));
    one.stats().unwrap();
    assert_eq!(texts(&other, 1..2).await, [Some("shared".to_owned())]);
}

#[tokio::test]
async fn a_process_that_writes_for_long_holds_up_no_look_up_and_costs_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 10, 20);
    let store = open(folder.path());
    let other = other_program(folder.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for number in 10..1_000 {
        store.store(key(number), &answer(&text(number, 20)));
    }
    for (number, found) in texts(&store, 0..1_000).await.into_iter().enumerate() {
        assert_eq!(found, Some(text(number as u64, 20)));
    }
    other.execute_batch("COMMIT").unwrap();
    drop(store);
    assert_eq!(open(folder.path()).stats().unwrap().entries, 1_000);
}

#[tokio::test]
async fn answers_that_wait_take_bounded_memory_and_what_was_not_kept_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (store, heard) = open_listening(folder.path());
    let other = other_program(folder.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mebibyte = answer(&"x".repeat(1 << 20));
    for number in 0..70 {
        store.store(key(number), &mebibyte);
    }
    other.execute_batch("COMMIT").unwrap();
    drop(store);
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].ends_with(": 7 answers not stored"), "{heard:?}");
    assert_eq!(open(folder.path()).stats().unwrap().entries, 63);
}
