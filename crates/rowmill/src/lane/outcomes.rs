//! What a line of results means for the row that reads it.

use rowmill_types::{BatchAnswerOrigin, CallError, CallFailure, CallRetryClass, Completion};

use super::endpoint_plan::EndpointPlan;

/// Reads a line of results as the answer of a model.
pub(super) fn read_line(
    plan: &EndpointPlan,
    origin: &BatchAnswerOrigin,
    line: &[u8],
) -> Result<Completion, CallError> {
    let read = plan.api.read_result(line.trim_ascii()).map_err(|what| {
        let message = format!("the result in batch job `{}` cannot be read: {what}", origin.job);
        CallError::new(CallFailure::Server, message)
    });
    let completion = read.and_then(|result| result.outcome)?;
    Ok(Completion { batch: Some(Box::new(origin.clone())), ..completion })
}

pub(super) fn parked(waits_for: &str) -> CallError {
    CallError::new(CallFailure::Parked, waits_for.to_owned())
}

/// Whether the same request may succeed in another job.
pub(super) fn is_passing(error: &CallError) -> bool {
    matches!(error.retry_class(), CallRetryClass::Transient { .. })
}

/// The failure of a request in a job. The engine must not wait for anything: a pass makes no calls.
pub(super) fn from_job(error: CallError, origin: BatchAnswerOrigin) -> CallError {
    CallError { retry_after: None, rate_limits: None, batch: Some(Box::new(origin)), ..error }
}
