//! Models that answer with the prompt, or with nothing.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rowmill_core::ports::Model;
use rowmill_types::{Attachment, CallError, Completion, Request};
use tokio::time::Instant;

use super::make::{answer, last_files, last_text};

/// Makes what follows it the answer to this and every later row.
const FIXED: &str = "***FIXED_RESPONSE";

/// Answers with the prompt.
#[derive(Debug, Default)]
pub(super) struct Passthrough {
    fixed: RwLock<Option<String>>,
}

impl Passthrough {
    fn text(&self, request: &Request) -> String {
        let said = last_text(request);
        if let Some(fixed) = said.strip_prefix(FIXED) {
            let fixed = fixed.trim().to_owned();
            *self.fixed.write().unwrap_or_else(PoisonError::into_inner) = Some(fixed.clone());
            return fixed;
        }
        let fixed = self.fixed.read().unwrap_or_else(PoisonError::into_inner);
        match fixed.as_deref() {
            Some(fixed) => fixed.to_owned(),
            None => with_files(said, last_files(request)),
        }
    }
}

/// A text and, after it, a line for each file that came with it.
fn with_files(said: &str, files: &[Attachment]) -> String {
    let mut text = said.to_owned();
    for file in files {
        if !text.is_empty() {
            text.push('\n');
        }
        let Attachment { name, media_type, bytes, digest } = file;
        text.push_str(&format!("[file {name} {media_type} {} bytes sha256:{digest}]", bytes.len()));
    }
    text
}

impl Model for Passthrough {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        ready(Ok(answer(request, self.text(request), Instant::now(), "passthrough"))).boxed()
    }
}

/// Answers with the prompt after a while.
#[derive(Debug)]
pub(super) struct Slow {
    echo: Passthrough,
    delay: Duration,
}

impl Slow {
    pub(super) fn new(delay: Duration) -> Self {
        Self { echo: Passthrough::default(), delay }
    }
}

impl Model for Slow {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        async move {
            let started = Instant::now();
            tokio::time::sleep(self.delay).await;
            Ok(answer(request, self.echo.text(request), started, "slow"))
        }
        .boxed()
    }
}

/// Answers with nothing.
#[derive(Debug)]
pub(super) struct Silent;

impl Model for Silent {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        ready(Ok(answer(request, String::new(), Instant::now(), "silent"))).boxed()
    }
}
