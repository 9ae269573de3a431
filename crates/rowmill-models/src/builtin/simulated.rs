//! A simulated model that generates answers, with configurable latency and failures.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_schema_faker::{seed_from, simulated_sentence, simulated_value};
use rowmill_types::{CallError, CallFailure, Completion, Request};
use serde_json::Value;
use tokio::time::Instant;

use super::build::{estimated_completion, last_text};
use crate::build_model::ModelSetup;
use crate::model_settings::ModelSettingKey;

/// Generates answers from the prompt and a seed alone, so that a run is reproducible.
#[derive(Debug)]
pub(super) struct SimulatedModel {
    schema: Option<Value>,
    seed: String,
    latency: Duration,
    jitter: f64,
    failure_rate: f64,
}

impl SimulatedModel {
    pub(super) fn new(setup: &ModelSetup) -> Self {
        let settings = &setup.model.settings;
        Self {
            schema: setup.schema.clone(),
            seed: settings.integer(ModelSettingKey::Seed).unwrap_or(0).to_string(),
            latency: settings.span(ModelSettingKey::Latency).unwrap_or_default(),
            jitter: settings.number(ModelSettingKey::Jitter).unwrap_or(0.0),
            failure_rate: settings.number(ModelSettingKey::FailureRate).unwrap_or(0.0),
        }
    }

    /// A number from 0 up to 1 that depends on the call, so that a retry draws a different one.
    fn draw(&self, request: &Request, what: &str) -> f64 {
        let drawn = seed_from(&[&request.key, &request.attempt.to_string(), &self.seed, what]);
        // The upper 53 bits fit a float exactly.
        (drawn >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn text(&self, prompt: &str) -> Result<String, CallError> {
        let seed = seed_from(&[prompt, &self.seed]);
        let Some(schema) = &self.schema else { return Ok(simulated_sentence(prompt, seed)) };
        let value = simulated_value(schema, seed).map_err(|what| {
            let message = format!("the schema asks for more than the built-in model can generate: {what}");
            CallError::new(CallFailure::Refused, message)
        });
        Ok(value?.to_string())
    }
}

impl Model for SimulatedModel {
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
            Ok(estimated_completion(request, self.text(last_text(request))?, started, "simulated"))
        }
        .boxed()
    }
}
