//! The conformance suite accepts a model that satisfies the contract and reports what another one violates.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::header::HeaderMap;
use rowmill_core::ports::Model;
use rowmill_http::{HttpClient, RequestTarget};
use rowmill_testkit::conformance::check_model;
use rowmill_testkit::{Simulator, SimulatorScript, fake_answer};
use rowmill_types::{CallError, CallFailure, Completion, FinishReason, Request};
use serde_json::{Value, json};

/// How the model behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    RetriesByItself,
    TakesErrorsForAnswers,
}

/// A minimal model that uses chat completions.
#[derive(Debug)]
struct SmallChat {
    client: HttpClient,
    target: RequestTarget,
    manner: Manner,
}

impl SmallChat {
    fn new(simulator: &Simulator, manner: Manner) -> Result<Self, Box<dyn std::error::Error>> {
        let url = format!("{}/v1/chat/completions", simulator.url()).parse()?;
        let client = HttpClient::new(&|_| None);
        Ok(Self { client, target: RequestTarget::new(url, HeaderMap::new())?, manner })
    }

    async fn call(&self, prompt: &str) -> Result<Completion, CallError> {
        let broken = |error: rowmill_http::HttpFailure| {
            CallError::new(CallFailure::ConnectionBroken, error.to_string())
        };
        let body = json!({"model": "m", "messages": [{"role": "user", "content": prompt}]}).to_string();
        let sent = self.client.post(&self.target, None, Bytes::from(body)).await.map_err(broken)?;
        let status = sent.status();
        let wait = sent.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let body = sent.body(1_000_000).await.map_err(broken)?;
        if status != 200 && self.manner != Manner::TakesErrorsForAnswers {
            let failure = match status {
                401 => CallFailure::Unauthorized,
                429 => CallFailure::RateLimited,
                500.. => CallFailure::Server,
                _ => CallFailure::Refused,
            };
            let retry_after = wait.map(Duration::from_secs);
            return Err(CallError {
                status: Some(status),
                retry_after,
                ..CallError::new(failure, "refused")
            });
        }
        let body: Value = serde_json::from_slice(&body)
            .map_err(|error| CallError::new(CallFailure::Malformed, error.to_string()))?;
        let choice = &body["choices"][0];
        let finish = match choice["finish_reason"].as_str() {
            Some("length") => FinishReason::Length,
            Some("content_filter") => FinishReason::Filtered,
            _ if choice["message"]["refusal"].is_string() => FinishReason::Refused,
            _ => FinishReason::Complete,
        };
        Ok(Completion { finish, ..fake_answer(choice["message"]["content"].as_str().unwrap_or_default()) })
    }
}

impl Model for SmallChat {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            let prompt = &request.messages[0].text;
            match self.call(prompt).await {
                Err(_) if self.manner == Manner::RetriesByItself => self.call(prompt).await,
                result => result,
            }
        })
    }
}

async fn deviations(manner: Manner) -> Vec<String> {
    let simulator = Simulator::start(SimulatorScript::new()).await;
    match SmallChat::new(&simulator, manner) {
        Ok(model) => check_model(&model, &simulator).await,
        Err(error) => vec![error.to_string()],
    }
}

#[tokio::test]
async fn a_model_that_keeps_the_contract_has_no_deviations() {
    assert_eq!(deviations(Manner::Right).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_model_that_retries_by_itself_is_found() {
    let found = deviations(Manner::RetriesByItself).await;
    assert!(found.iter().any(|what| what.contains("2 calls were made")), "{found:?}");
}

#[tokio::test]
async fn a_model_that_takes_errors_for_answers_is_found() {
    let found = deviations(Manner::TakesErrorsForAnswers).await;
    assert!(found.iter().any(|what| what.contains("[[401]]")), "{found:?}");
    assert!(found.iter().any(|what| what.contains("retry-after")), "{found:?}");
}
