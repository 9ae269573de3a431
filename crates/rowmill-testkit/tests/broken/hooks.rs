//! Hooks that violate their contract.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use rowmill_core::ports::{HookCall, HookKind, HookRunner};
use rowmill_testkit::conformance::{HookCase, HookFacts, check_hooks};
use serde_json::{Value, json};

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    TakesStrangers,
    RefusesStrangers,
    Meddles,
    DoesNothing,
    GivesNumbers,
    GivesOther,
    MixesUp,
    BreaksWhenDropped,
    HidesFailure,
    FailsSilently,
    Panics,
}

#[derive(Debug)]
struct Broken {
    manner: Manner,
    last: AtomicU64,
    is_broken: AtomicBool,
    finished: Mutex<u64>,
}

impl Broken {
    async fn answer(&self, call: HookCall<'_>) -> Result<Option<Value>, String> {
        assert!(self.manner != Manner::Panics || call.kind != HookKind::AfterTool, "no result");
        if call.agent != "mine" {
            return match self.manner {
                Manner::TakesStrangers => Ok(Some(json!("hello"))),
                Manner::RefusesStrangers => Err("who is that".to_owned()),
                _ => Ok(None),
            };
        }
        match (call.kind, self.manner) {
            (HookKind::BeforeModel, Manner::Meddles) => Ok(Some(json!("more"))),
            (HookKind::BeforeModel, _) => Ok(None),
            (HookKind::AfterModel, Manner::HidesFailure) => Ok(None),
            (HookKind::AfterModel, Manner::FailsSilently) => Err(String::new()),
            (HookKind::AfterModel, _) => Err("broken".to_owned()),
            (_, Manner::DoesNothing) => Ok(None),
            (_, Manner::GivesNumbers) => Ok(Some(json!(3))),
            (_, Manner::GivesOther) => Ok(Some(json!({"limit": 4}))),
            _ => self.limit(call.row).await,
        }
    }

    /// Replaces the arguments of a tool.
    async fn limit(&self, row: u64) -> Result<Option<Value>, String> {
        if self.is_broken.swap(self.manner == Manner::BreaksWhenDropped, Ordering::SeqCst) {
            return Err("the hook before did not end".to_owned());
        }
        self.last.store(row, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.is_broken.store(false, Ordering::SeqCst);
        *self.finished.lock().unwrap() += 1;
        let mixed = self.manner == Manner::MixesUp && self.last.load(Ordering::SeqCst) != row;
        Ok(Some(json!({"limit": if mixed { 0 } else { 3 }})))
    }
}

impl HookRunner for Broken {
    fn call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Option<Value>, String>> {
        Box::pin(self.answer(call))
    }
}

#[tokio::test(start_paused = true)]
async fn every_promise_of_hooks_is_checked() {
    let case = |kind, about| HookCase { kind, agent: "mine".to_owned(), about };
    let steps_in = case(HookKind::BeforeTool, json!({"name": "search", "arguments": {}}));
    let facts = HookFacts {
        looks_on: Some(case(HookKind::BeforeModel, json!("text"))),
        steps_in: Some((steps_in, json!({"limit": 3}))),
        fails: Some(case(HookKind::AfterModel, json!("text"))),
    };
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::TakesStrangers, "an agent without a hook BeforeModel: it changes something: \"hello\""),
        (Manner::RefusesStrangers, "an agent without a hook AfterTurn: it fails: who is that"),
        (Manner::Meddles, "a hook that looks on: it changes something: \"more\""),
        (Manner::DoesNothing, "a hook that steps in: it changes nothing"),
        (Manner::GivesNumbers, "a hook that steps in: 3 cannot stand in its place"),
        (Manner::GivesOther, "a hook that steps in: it gives {\"limit\":4} instead of {\"limit\":3}"),
        (Manner::MixesUp, "calls at once: it gives {\"limit\":0} instead of {\"limit\":3}"),
        (Manner::BreaksWhenDropped, "a call after one was given up: it fails: the hook before did not end"),
        (Manner::HidesFailure, "a hook that fails: it is reported as if it had worked: None"),
        (Manner::FailsSilently, "a hook that fails: it does not say why"),
        (Manner::Panics, "an agent without a hook AfterTool: it panicked: no result"),
    ] {
        let hooks = Broken {
            manner,
            last: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
            finished: Mutex::default(),
        };
        assert_reported(&manner, &check_hooks(&hooks, &facts).await, expected);
    }
}
