//! The contract of answer stores.

use std::thread;

use futures_util::future::join_all;
use rowmill_core::ports::{AnswerKey, AnswerStore, StoredAnswer};
use rowmill_types::TokenUsage;

use super::check_suite::{CheckResult, CheckSuite, ensure};

/// How many threads store answers at once.
const THREADS: u128 = 4;
/// How many answers each of them stores.
const EACH: u128 = 32;
/// The length of a long answer.
const LONG: usize = 1 << 20;

/// Checks `store` against the contract of the port; returns every violation, nothing if it satisfies the
/// contract.
///
/// An answer is found as soon as `keep` has returned, in full, and under its own key only. Storing a key
/// again replaces its answer. Threads can store answers at the same time, and a search that is dropped does
/// not affect others.
///
/// The suite stores answers under keys of its own. They are not answers to real requests, so use a store that
/// is thrown away afterwards.
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
///
/// use futures_util::future::{BoxFuture, FutureExt, ready};
/// use rowmill_core::ports::{AnswerStore, AnswerKey, StoredAnswer};
/// use rowmill_testkit::conformance::check_answer_store;
///
/// /// Keeps answers in memory.
/// #[derive(Debug, Default)]
/// struct Memory(Mutex<HashMap<AnswerKey, StoredAnswer>>);
///
/// impl AnswerStore for Memory {
///     fn find(&self, key: AnswerKey) -> BoxFuture<'_, Option<StoredAnswer>> {
///         ready(self.0.lock().unwrap().get(&key).cloned()).boxed()
///     }
///
///     fn store(&self, key: AnswerKey, answer: &StoredAnswer) {
///         self.0.lock().unwrap().insert(key, answer.clone());
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// assert_eq!(check_answer_store(&Memory::default()).await, Vec::<String>::new());
/// # });
/// ```
pub async fn check_answer_store(store: &dyn AnswerStore) -> Vec<String> {
    let mut suite = CheckSuite::default();
    suite.wait_for("looking for an answer that was never kept", missing(store, AnswerKey(1))).await;
    for (key, (what, answer)) in (100..).zip(answers()) {
        let check = async {
            store.store(AnswerKey(key), &answer);
            finds(store, AnswerKey(key), &answer).await
        };
        suite.wait_for(&format!("keeping {what}"), check).await;
    }
    suite.wait_for("keys that are nearly the same", near_keys(store)).await;
    suite.wait_for("keeping another answer under the same key", replaced(store)).await;
    suite.wait_for("a search that is given up", given_up(store)).await;
    suite.wait_for("answers from several threads", from_threads(store)).await;
    suite.deviations()
}

fn answer(text: impl Into<String>) -> StoredAnswer {
    StoredAnswer { text: text.into(), usage: None, model: None }
}

fn answers() -> Vec<(&'static str, StoredAnswer)> {
    let usage = TokenUsage { input: 11, cached: 5, cache_write: 3, output: 7, reasoning: 2 };
    let model = Some("conformance-1".to_owned());
    vec![
        ("an answer", StoredAnswer { usage: Some(usage), model, ..answer("yes") }),
        ("an answer of which nothing is known", answer("so")),
        (
            "an answer that used nothing",
            StoredAnswer { usage: Some(TokenUsage::default()), ..answer("free") },
        ),
        ("an empty answer", answer("")),
        ("an answer that is not ASCII", answer("Grüße, 世界 \u{1f30d} \u{0} '; --")),
        ("a long answer", answer("long ".repeat(LONG / 5))),
    ]
}

async fn finds(store: &dyn AnswerStore, key: AnswerKey, answer: &StoredAnswer) -> CheckResult {
    let found = store.find(key).await.ok_or("it is not found")?;
    ensure(found.text == answer.text, || "it is found with another text".to_owned())?;
    ensure(found == *answer, || format!("it is found as {:?} of {:?}", found.usage, found.model))
}

async fn missing(store: &dyn AnswerStore, key: AnswerKey) -> CheckResult {
    let found = store.find(key).await;
    ensure(found.is_none(), || format!("`{}` is found", found.map(|found| found.text).unwrap_or_default()))
}

/// A store must not truncate keys: keys that differ in only one half are different.
async fn near_keys(store: &dyn AnswerStore) -> CheckResult {
    let keys = [0, 1 << 64, 5 << 64, 5, u128::MAX, u128::MAX >> 1, 1 << 127];
    for (number, key) in keys.into_iter().enumerate() {
        missing(store, AnswerKey(key)).await.map_err(|what| format!("key {key:032x} is new, and {what}"))?;
        store.store(AnswerKey(key), &answer(format!("near {number}")));
    }
    for (number, key) in keys.into_iter().enumerate() {
        let found = finds(store, AnswerKey(key), &answer(format!("near {number}"))).await;
        found.map_err(|what| format!("key {key:032x}: {what}"))?;
    }
    Ok(())
}

async fn replaced(store: &dyn AnswerStore) -> CheckResult {
    for text in ["first", "second"] {
        store.store(AnswerKey(200), &answer(text));
        finds(store, AnswerKey(200), &answer(text))
            .await
            .map_err(|what| format!("the {text} one: {what}"))?;
    }
    Ok(())
}

async fn given_up(store: &dyn AnswerStore) -> CheckResult {
    store.store(AnswerKey(201), &answer("kept"));
    let mut search = store.find(AnswerKey(202));
    drop(futures_util::poll!(&mut search));
    drop(search);
    finds(store, AnswerKey(201), &answer("kept")).await
}

async fn from_threads(store: &dyn AnswerStore) -> CheckResult {
    let key = |thread: u128, number: u128| AnswerKey(10_000 + thread * EACH + number);
    let text = |thread: u128, number: u128| answer(format!("answer {number} of thread {thread}"));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in 0..EACH {
                    store.store(key(thread, number), &text(thread, number));
                }
            });
        }
    });
    let all = (0..THREADS).flat_map(|thread| (0..EACH).map(move |number| (thread, number)));
    let searches = all.map(|(thread, number)| async move {
        let found = finds(store, key(thread, number), &text(thread, number)).await;
        found.map_err(|what| format!("answer {number} of thread {thread}: {what}"))
    });
    join_all(searches).await.into_iter().collect()
}
