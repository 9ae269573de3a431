//! A simulated model that generates answers, with configurable latency and failures.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_schema_faker::{seed_of, sentence_for, value_for};
use rowmill_types::{CallError, CallFailure, Completion, Request};
use serde_json::Value;
use tokio::time::Instant;

use super::make::{answer, last_text};
use crate::build::Setup;
use crate::settings::Key;

/// Generates answers from the prompt and a seed alone, so that a run is reproducible.
#[derive(Debug)]
pub(super) struct Simulated {
    schema: Option<Value>,
    seed: String,
    latency: Duration,
    jitter: f64,
    failure_rate: f64,
}

impl Simulated {
    pub(super) fn new(setup: &Setup) -> Self {
        let settings = &setup.model.settings;
        Self {
            schema: setup.schema.clone(),
            seed: settings.integer(Key::Seed).unwrap_or(0).to_string(),
            latency: settings.span(Key::Latency).unwrap_or_default(),
            jitter: settings.number(Key::Jitter).unwrap_or(0.0),
            failure_rate: settings.number(Key::FailureRate).unwrap_or(0.0),
        }
    }

    /// A number from 0 up to 1 that depends on the call, so that a retry draws a different one.
    fn draw(&self, request: &Request, what: &str) -> f64 {
        let drawn = seed_of(&[&request.key, &request.attempt.to_string(), &self.seed, what]);
        // The upper 53 bits fit a float exactly.
        (drawn >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn text(&self, prompt: &str) -> Result<String, CallError> {
        let seed = seed_of(&[prompt, &self.seed]);
        let Some(schema) = &self.schema else { return Ok(sentence_for(prompt, seed)) };
        let value = value_for(schema, seed).map_err(|what| {
            let message = format!("the schema asks for more than the built-in model can generate: {what}");
            CallError::new(CallFailure::Refused, message)
        });
        Ok(value?.to_string())
    }
}

impl Model for Simulated {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        async move {
            let started = Instant::now();
            if !self.latency.is_zero() {
                let stray = 1.0 + self.jitter * (2.0 * self.draw(request, "latency") - 1.0);
                tokio::time::sleep(self.latency.mul_f64(stray)).await;
            }
            if self.draw(request, "failure") < self.failure_rate {
                let error = CallError::new(CallFailure::Server, "a simulated failure");
                return Err(CallError { status: Some(503), code: Some("simulated".to_owned()), ..error });
            }
            Ok(answer(request, self.text(last_text(request))?, started, "simulated"))
        }
        .boxed()
    }
}
