//! The store through its public interface, and its file through SQLite.

mod keeping;
mod pruning;
mod sharing;
mod trouble;

use std::path::Path;
use std::sync::{Arc, Mutex};

use rowmill_core::ports::{AnswerKey, AnswerStore, StoredAnswer};
use rowmill_types::TokenUsage;
use rusqlite::Connection;

use super::SqliteAnswerStore;

/// A store that is expected to have no trouble.
fn open(folder: &Path) -> SqliteAnswerStore {
    SqliteAnswerStore::open(folder, Arc::new(|message| panic!("{message}"))).unwrap()
}

/// A store and its notices.
fn open_listening(folder: &Path) -> (SqliteAnswerStore, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let store =
        SqliteAnswerStore::open(folder, Arc::new(move |events| ear.lock().unwrap().push(events))).unwrap();
    (store, heard)
}

fn answer(text: &str) -> StoredAnswer {
    let usage = TokenUsage { input: 10, cached: 4, cache_write: 3, output: 2, reasoning: 1 };
    StoredAnswer { text: text.to_owned(), usage: Some(usage), model: Some("small-1".to_owned()) }
}

fn key(number: u64) -> AnswerKey {
    // Distributed like digests.
    AnswerKey(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// Stores the answers `0` to `count - 1`, with texts of this length, and closes the store.
fn fill(folder: &Path, count: u64, length: usize) {
    let store = open(folder);
    for number in 0..count {
        store.store(key(number), &answer(&text(number, length)));
    }
}

fn text(number: u64, length: usize) -> String {
    format!("{number:0length$}")
}

/// The file, as another program would open it.
fn other_program(folder: &Path) -> Connection {
    Connection::open(SqliteAnswerStore::file_in(folder)).unwrap()
}

async fn texts(store: &SqliteAnswerStore, numbers: impl Iterator<Item = u64>) -> Vec<Option<String>> {
    let finds = numbers.map(|number| store.find(key(number)));
    let found = futures_util::future::join_all(finds).await;
    found.into_iter().map(|found| found.map(|answer| answer.text)).collect()
}
