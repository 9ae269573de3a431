//! Answer stores that violate their contract.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use futures_util::future::BoxFuture;
use rowmill_core::ports::{AnswerKey, AnswerStore, StoredAnswer};
use rowmill_testkit::conformance::check_answer_store;

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    FindsAnything,
    KeepsNothing,
    ForgetsUsage,
    CutsText,
    CutsKeys,
    KeepsTheFirst,
    BreaksWhenDropped,
    KeepsForItsThread,
    PanicsAtLetters,
    Hangs,
}

#[derive(Debug)]
struct Broken {
    manner: Manner,
    thread: ThreadId,
    is_broken: AtomicBool,
    kept: Mutex<HashMap<AnswerKey, StoredAnswer>>,
}

impl Broken {
    fn key(&self, key: AnswerKey) -> AnswerKey {
        if self.manner == Manner::CutsKeys { AnswerKey(key.0 & u128::from(u64::MAX)) } else { key }
    }
}

impl AnswerStore for Broken {
    fn find(&self, key: AnswerKey) -> BoxFuture<'_, Option<StoredAnswer>> {
        Box::pin(async move {
            if self.is_broken.swap(self.manner == Manner::BreaksWhenDropped, Ordering::SeqCst) {
                return None;
            }
            tokio::task::yield_now().await;
            self.is_broken.store(false, Ordering::SeqCst);
            if self.manner == Manner::Hangs {
                std::future::pending::<()>().await;
            }
            let found = self.kept.lock().unwrap().get(&self.key(key)).cloned();
            let other = StoredAnswer { text: "anything".to_owned(), usage: None, model: None };
            found.or_else(|| (self.manner == Manner::FindsAnything).then_some(other))
        })
    }

    fn store(&self, key: AnswerKey, answer: &StoredAnswer) {
        assert!(self.manner != Manner::PanicsAtLetters || answer.text.is_ascii(), "no letters");
        let other_thread = std::thread::current().id() != self.thread;
        if self.manner == Manner::KeepsNothing || (self.manner == Manner::KeepsForItsThread && other_thread) {
            return;
        }
        let mut answer = answer.clone();
        match self.manner {
            Manner::ForgetsUsage => answer.usage = None,
            Manner::CutsText => answer.text.truncate(1000),
            _ => {}
        }
        let mut kept = self.kept.lock().unwrap();
        if self.manner == Manner::KeepsTheFirst {
            kept.entry(key).or_insert(answer);
        } else {
            kept.insert(self.key(key), answer);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_promise_of_a_store_of_answers_is_checked() {
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::FindsAnything, "looking for an answer that was never kept: `anything` is found"),
        (Manner::KeepsNothing, "keeping an answer: it is not found"),
        (Manner::ForgetsUsage, "keeping an answer: it is found as None of Some(\"conformance-1\")"),
        (Manner::CutsText, "keeping a long answer: it is found with another text"),
        (
            Manner::CutsKeys,
            "keys that are nearly the same: key 00000000000000010000000000000000 is new, and `near 0` is found",
        ),
        (
            Manner::KeepsTheFirst,
            "keeping another answer under the same key: the second one: it is found with another text",
        ),
        (Manner::BreaksWhenDropped, "a search that is given up: it is not found"),
        (Manner::KeepsForItsThread, "answers from several threads: answer 0 of thread 0: it is not found"),
        (Manner::PanicsAtLetters, "keeping an answer that is not ASCII: it panicked: no letters"),
        (Manner::Hangs, "looking for an answer that was never kept: it did not come back"),
    ] {
        let thread = std::thread::current().id();
        let store = Broken { manner, thread, is_broken: AtomicBool::new(false), kept: Mutex::default() };
        assert_reported(&manner, &check_answer_store(&store).await, expected);
    }
}
