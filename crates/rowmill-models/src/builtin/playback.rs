//! A model that replays the conversation of its first call.

use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rowmill_core::ports::Model;
use rowmill_types::{CallError, Completion, MessageRole, Request};
use tokio::time::Instant;

use super::build::estimated_completion;

/// Keeps the first conversation and returns its answers one by one.
#[derive(Debug, Default)]
pub(super) struct PlaybackModel(Mutex<Option<PlaybackTape>>);

#[derive(Debug)]
struct PlaybackTape {
    messages: usize,
    answers: std::vec::IntoIter<String>,
    over: usize,
}

impl PlaybackModel {
    fn text(&self, request: &Request) -> String {
        let mut tape = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tape) = tape.as_mut() else {
            let messages = request.messages.len();
            let answers = request.messages.iter().filter(|message| message.role == MessageRole::Assistant);
            let answers: Vec<String> = answers.map(|message| message.text.clone()).collect();
            *tape = Some(PlaybackTape { messages, answers: answers.into_iter(), over: 0 });
            return format!("HISTORY LOADED ({messages}) messages");
        };
        tape.answers.next().unwrap_or_else(|| {
            tape.over += 1;
            format!("MESSAGES EXHAUSTED (list size {}) ({} overage)", tape.messages, tape.over)
        })
    }
}

impl Model for PlaybackModel {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        ready(Ok(estimated_completion(request, self.text(request), Instant::now(), "playback"))).boxed()
    }
}
