//! The contract of models that use a protocol of the simulator.

use std::time::Duration;

use futures_util::future::{Either, select};
use rowmill_core::ports::Model;
use rowmill_simulator::Simulator;
use rowmill_types::{CallError, CallFailure, Completion, FinishReason, Message, Request};

/// The expected result of a call with a marker.
#[derive(Debug)]
enum ExpectedOutcome {
    /// An answer with this finish reason, with or without text.
    Answer(FinishReason, ExpectedText),
    /// One of these failures, with this status if one was received.
    Failure(&'static [CallFailure], Option<u16>),
    /// An answer with one of these finish reasons, or this failure, because vendors differ.
    Declined(&'static [FinishReason], CallFailure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedText {
    Some,
    None,
}

/// Checks `model` against its contract with the help of `simulator`; returns every violation, nothing if it
/// satisfies the contract.
///
/// The model must be set up to call the simulator without a schema, and the simulator must have no faults of
/// its own: the prompts contain markers that request them.
pub async fn check_model(model: &dyn Model, simulator: &Simulator) -> Vec<String> {
    let mut deviations = Vec::new();
    for (prompt, expected) in cases() {
        let before = simulator.stats().requests;
        let result = model.complete(&request(prompt)).await;
        if let Some(what) = deviation(&result, &expected) {
            deviations.push(format!("`{prompt}`: {what}"));
        }
        let calls = simulator.stats().requests - before;
        if calls != 1 {
            deviations.push(format!("`{prompt}`: {calls} calls were made instead of one"));
        }
    }
    deviations.extend(check_wait(model).await);
    deviations.extend(check_drop(model, simulator).await);
    deviations
}

fn cases() -> Vec<(&'static str, ExpectedOutcome)> {
    use CallFailure::{ConnectionBroken, Malformed, RateLimited, Refused, Server, Unauthorized};
    vec![
        ("conformance", ExpectedOutcome::Answer(FinishReason::Complete, ExpectedText::Some)),
        ("conformance [[empty]]", ExpectedOutcome::Answer(FinishReason::Complete, ExpectedText::None)),
        ("conformance [[length]]", ExpectedOutcome::Answer(FinishReason::Length, ExpectedText::Some)),
        (
            "conformance [[filter]]",
            ExpectedOutcome::Declined(&[FinishReason::Filtered], CallFailure::Filtered),
        ),
        (
            "conformance [[refusal]]",
            ExpectedOutcome::Declined(&[FinishReason::Refused, FinishReason::Filtered], Refused),
        ),
        ("conformance [[400]]", ExpectedOutcome::Failure(&[Refused], Some(400))),
        ("conformance [[401]]", ExpectedOutcome::Failure(&[Unauthorized], Some(401))),
        ("conformance [[429]]", ExpectedOutcome::Failure(&[RateLimited], Some(429))),
        ("conformance [[500]]", ExpectedOutcome::Failure(&[Server], Some(500))),
        ("conformance [[503]]", ExpectedOutcome::Failure(&[Server], Some(503))),
        ("conformance [[529]]", ExpectedOutcome::Failure(&[Server], Some(529))),
        ("conformance [[garbage]]", ExpectedOutcome::Failure(&[ConnectionBroken, Malformed], None)),
        ("conformance [[truncate]]", ExpectedOutcome::Failure(&[ConnectionBroken, Malformed], None)),
        ("conformance [[midway]]", ExpectedOutcome::Failure(&[ConnectionBroken, Malformed], None)),
        ("conformance [[reset]]", ExpectedOutcome::Failure(&[ConnectionBroken], None)),
    ]
}

fn request(prompt: &str) -> Request {
    Request {
        key: "conformance".to_owned(),
        row: 1,
        attempt: 1,
        output_cap: None,
        purpose: Default::default(),
        messages: vec![Message::user(prompt)],
    }
}

fn deviation(result: &Result<Completion, CallError>, expected: &ExpectedOutcome) -> Option<String> {
    let is_met = match (result, expected) {
        (Ok(completion), ExpectedOutcome::Answer(finish, text)) => {
            let has_text = if completion.text.is_empty() { ExpectedText::None } else { ExpectedText::Some };
            completion.finish == *finish && has_text == *text && completion.usage.is_some()
        }
        (Ok(completion), ExpectedOutcome::Declined(ways, _)) => ways.contains(&completion.finish),
        (Err(error), ExpectedOutcome::Failure(failures, status)) => {
            failures.contains(&error.failure) && status.is_none_or(|status| error.status == Some(status))
        }
        (Err(error), ExpectedOutcome::Declined(_, failure)) => error.failure == *failure,
        _ => false,
    };
    (!is_met).then(|| format!("expected {expected:?}, got {result:?}"))
}

/// A wait that the provider asks for must be passed on.
async fn check_wait(model: &dyn Model) -> Option<String> {
    let prompt = "conformance [[429,retry-after=7]]";
    let requested_wait = model.complete(&request(prompt)).await.err().and_then(|error| error.retry_after);
    (requested_wait != Some(Duration::from_secs(7)))
        .then(|| format!("`{prompt}`: the wait is reported as {requested_wait:?}"))
}

/// A call whose future is dropped must end.
async fn check_drop(model: &dyn Model, simulator: &Simulator) -> Option<String> {
    let request = request("conformance [[hang]]");
    let abandoned = simulator.stats().abandoned;
    let arrived = Box::pin(simulator.wait_until(|stats| stats.in_flight > 0));
    match select(model.complete(&request), arrived).await {
        Either::Left((result, _)) => return Some(format!("a call that hangs gave {result:?}")),
        Either::Right((_, call)) => drop(call),
    }
    simulator.wait_until(|stats| stats.abandoned > abandoned).await;
    None
}
