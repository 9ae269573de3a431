//! Models that violate their contract.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_testkit::conformance::{ModelFacts, check_program_model};
use rowmill_testkit::{busy_failure, fake_answer};
use rowmill_types::{CallError, Completion, MessageRole, Request};

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    Fails,
    AnswersOther,
    MixesUp,
    PanicsAtEmpty,
    PanicsAtLong,
    PanicsAtLetters,
    PanicsAtHistory,
    PanicsAtTools,
    Hangs,
    LeavesCalls,
    RunsOn,
    Hides,
    BreaksWhenDropped,
    CloseHangs,
    ClosesOnce,
    StaysClosed,
}

#[derive(Debug)]
struct Broken {
    manner: Manner,
    last: Mutex<String>,
    under_way: AtomicUsize,
    is_broken: AtomicBool,
    closed: AtomicUsize,
}

/// A call that is counted until it is dropped.
struct Counted<'m>(&'m Broken, bool);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let goes_on = match self.0.manner {
            Manner::LeavesCalls => true,
            Manner::RunsOn => self.1,
            _ => false,
        };
        if !goes_on {
            self.0.under_way.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Broken {
    fn check_panics(&self, request: &Request) {
        let text = &request.messages[0].text;
        let bad = match self.manner {
            Manner::PanicsAtEmpty => text.is_empty(),
            Manner::PanicsAtLong => text.len() > 100_000,
            Manner::PanicsAtLetters => !text.is_ascii(),
            Manner::PanicsAtHistory => request.messages.len() > 1,
            Manner::PanicsAtTools => request.messages.iter().any(|message| message.role == MessageRole::Tool),
            _ => false,
        };
        assert!(!bad, "cannot take it");
    }

    async fn answer(&self, request: &Request) -> Result<Completion, CallError> {
        let message = request.messages[0].text.clone();
        self.check_panics(request);
        if self.manner == Manner::Fails
            || self.is_broken.load(Ordering::SeqCst)
            || (self.manner == Manner::StaysClosed && self.closed.load(Ordering::SeqCst) > 0)
        {
            return Err(busy_failure());
        }
        self.last.lock().unwrap().clone_from(&message);
        if self.manner != Manner::Hides {
            self.under_way.fetch_add(1, Ordering::SeqCst);
        }
        let is_given_up = message.ends_with("given up");
        let _counted = (self.manner != Manner::Hides).then(|| Counted(self, is_given_up));
        self.is_broken.store(is_given_up && self.manner == Manner::BreaksWhenDropped, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if is_given_up || self.manner == Manner::Hangs {
            tokio::time::sleep(Duration::from_secs(1000)).await;
        }
        Ok(match self.manner {
            Manner::AnswersOther => fake_answer("something else"),
            Manner::MixesUp => fake_answer(self.last.lock().unwrap().clone()),
            _ => fake_answer(message),
        })
    }
}

impl Model for Broken {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(self.answer(request))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let before = self.closed.fetch_add(1, Ordering::SeqCst);
            assert!(before == 0 || self.manner != Manner::ClosesOnce, "closed already");
            if self.manner == Manner::CloseHangs {
                std::future::pending::<()>().await;
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn every_promise_of_a_model_is_checked() {
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::Fails, "a call: `conformance: one call` got no answer: "),
        (
            Manner::AnswersOther,
            "a call: `conformance: one call` got an answer to something else: `something else`",
        ),
        (Manner::MixesUp, "calls at once: `conformance: call 1 of many` got an answer to something else: "),
        (Manner::PanicsAtEmpty, "a call with an empty text: it panicked: cannot take it"),
        (Manner::PanicsAtLong, "a call with a very long text: it panicked: cannot take it"),
        (Manner::PanicsAtLetters, "a call with text that is not ASCII: it panicked: cannot take it"),
        (Manner::PanicsAtHistory, "a call with an earlier answer: it panicked: cannot take it"),
        (Manner::PanicsAtTools, "a call with a tool that failed: it panicked: cannot take it"),
        (Manner::Hangs, "a call: it did not come back within 60 seconds"),
        (Manner::LeavesCalls, "a call that is given up: calls from before are still under way"),
        (Manner::RunsOn, "a call that is given up: it goes on although its future was dropped"),
        (Manner::Hides, "a call that is given up: it is not seen under way"),
        (Manner::BreaksWhenDropped, "a call after one was given up: `conformance: goes on` got no answer: "),
        (Manner::CloseHangs, "closing the model for the first time: it did not come back"),
        (Manner::ClosesOnce, "closing the model for the second time: it panicked: closed already"),
        (Manner::StaysClosed, "a call after `close`: `conformance: after the end` got no answer: "),
    ] {
        let model = Broken {
            manner,
            last: Mutex::default(),
            under_way: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            closed: AtomicUsize::new(0),
        };
        let facts = ModelFacts {
            belongs: Box::new(|prompt, answer| prompt == answer),
            under_way: Some(Box::new(|| model.under_way.load(Ordering::SeqCst))),
        };
        assert_reported(&manner, &check_program_model(&model, &facts).await, expected);
    }
}
