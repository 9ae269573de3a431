//! Unusable files.

use std::fs;
use std::sync::Arc;

use rowmill_core::ports::AnswerStore;
use rowmill_types::{Problem, ProblemCode};
use rusqlite::Connection;

use super::{answer, fill, key, open_listening, other_program, texts};
use crate::answers::{PruneSpec, SqliteAnswerStore};

fn refused(folder: &std::path::Path) -> Problem {
    let problem = SqliteAnswerStore::open(folder, Arc::new(|_| {})).unwrap_err();
    assert_eq!(problem.code, ProblemCode::CacheUnusable);
    assert!(problem.message.contains("answers.sqlite"), "{problem}");
    assert!(problem.hint.is_some());
    problem
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let garbage = b"this is not a database, however long one looks at it\n".repeat(100);
    let folder = tempfile::tempdir().unwrap();
    fs::write(SqliteAnswerStore::file_in(folder.path()), &garbage).unwrap();
    assert!(refused(folder.path()).message.ends_with("is not an answer cache"));
    assert_eq!(fs::read(SqliteAnswerStore::file_in(folder.path())).unwrap(), garbage);
}

#[test]
fn a_database_of_another_program_or_format_is_refused() {
    let make = |statements: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = Connection::open(SqliteAnswerStore::file_in(folder.path())).unwrap();
        file.execute_batch(statements).unwrap();
        refused(folder.path()).message
    };
    let other = "is a database, but not an answer cache";
    assert!(make("CREATE TABLE songs (title TEXT)").ends_with(other));
    assert!(make("CREATE TABLE answers (title TEXT)").ends_with(other));
    assert!(make("PRAGMA application_id = 7").ends_with(other));
    assert!(make("PRAGMA user_version = 1").ends_with(other));

    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 1, 1);
    other_program(folder.path()).pragma_update(None, "user_version", 2).unwrap();
    let message = refused(folder.path()).message;
    assert!(message.ends_with("has format 2, but this version reads and writes 1"), "{message}");
}

#[test]
fn a_damaged_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 1_000, 100);
    let path = SqliteAnswerStore::file_in(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let problem = refused(folder.path());
    assert!(problem.message.ends_with("cannot be opened"), "{problem}");
    assert!(problem.cause.unwrap().contains("malformed"));
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(refused(&folder.path().join("file/below")).message.contains("cannot be created"));
    fs::create_dir_all(SqliteAnswerStore::file_in(&folder.path().join("taken"))).unwrap();
    assert!(refused(&folder.path().join("taken")).message.ends_with("cannot be opened"));
}

#[tokio::test]
async fn a_store_that_fails_later_says_so_once_and_is_empty_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), 10, 20);
    let (store, heard) = open_listening(folder.path());
    other_program(folder.path()).execute_batch("DROP TABLE answers").unwrap();
    assert_eq!(texts(&store, 0..10).await, vec![None; 10]);
    // The notice comes from the thread; a job is answered only after it.
    assert_eq!(store.stats().unwrap_err().code, ProblemCode::CacheUnusable);
    store.store(key(1), &answer("nobody keeps this"));
    assert_eq!(texts(&store, 0..3).await, vec![None; 3]);
    assert!(store.prune(PruneSpec { all: true, ..PruneSpec::default() }).is_err());
    drop(store);
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].contains("continuing without it: no such table"), "{heard:?}");
}

#[tokio::test]
async fn a_store_that_cannot_write_says_so_and_lets_the_run_end() {
    let folder = tempfile::tempdir().unwrap();
    let (store, heard) = open_listening(folder.path());
    let other = other_program(folder.path());
    other
        .execute_batch("CREATE TRIGGER full BEFORE INSERT ON answers BEGIN SELECT raise(FAIL, 'full'); END")
        .unwrap();
    for number in 0..1_000 {
        store.store(key(number), &answer("lost"));
    }
    drop(store);
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].ends_with("full"), "{heard:?}");
}
