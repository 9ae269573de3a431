//! Classifies errors: maps a status and the words of an error to a kind of failure.

use std::time::Duration;

use rowmill_types::CallFailure;

use crate::error_body::ErrorBody;

const KEY_WORDS: &[&str] = &[
    "api key",
    "api_key",
    "apikey",
    "permission",
    "credential",
    "unauthorized",
    "unauthenticated",
    "authentication",
    "access token",
    "access denied",
    "invalid token",
    "invalid_token",
];
const MODEL_WORDS: &[&str] = &[
    "model_not_found",
    "model_not_exist",
    "model not exist",
    "is not a valid model",
    "invalid_model",
    "model not found",
    "unknown_model",
    "unknown model",
    "deploymentnotfound",
    "model_not_available",
];
const BAD_KEY_WORDS: &[&str] =
    &["invalid_api_key", "api_key_invalid", "api key not valid", "incorrect api key", "invalid api key"];

/// Names of vendors' content filters in errors.
const FILTER_WORDS: &[&str] = &[
    "content_filter",
    "content filtering policy",
    "content_policy_violation",
    "content management policy",
    "responsibleaipolicyviolation",
];

/// What vendors write if the account has no credit left or has reached its spending limit.
const CREDIT_WORDS: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit",
    "billing_not_active",
    "billing_error",
    "spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "exceeded_current_quota_error",
    "arrearage",
    "credit balance is too low",
    "specified api usage limits",
    "specified workspace api usage limits",
    "insufficient balance",
    "insufficient credits",
    "used all available credits",
    "have any credits",
    "run out of credits",
    "credits are depleted",
];

/// What vendors write if a daily quota is used up.
const DAY_WORDS: &[&str] =
    &["on tokens per day", "on requests per day", "(tpd)", "(rpd)", "free-models-per-day"];

/// A daily limit that resets this soon is refilled continuously: it only slows the run down and does not end
/// it.
pub(crate) const SOON_RENEWED: Duration = Duration::from_secs(60);

/// The failure for an error with an HTTP status; `wait` is the wait that the provider asked for.
pub(crate) fn classify_failure(status: u16, body: &ErrorBody, wait: Option<Duration>) -> CallFailure {
    match status {
        400 | 403 | 422 if body.contains_any(FILTER_WORDS) => CallFailure::Filtered,
        402 => CallFailure::QuotaExhausted,
        400 | 403 | 429 if body.contains_any(CREDIT_WORDS) => CallFailure::QuotaExhausted,
        429 if day_is_used_up(body, wait) => CallFailure::QuotaExhausted,
        401 => CallFailure::Unauthorized,
        403 if body.contains_any(KEY_WORDS) => CallFailure::Unauthorized,
        404 if names_model(body) => CallFailure::UnknownModel,
        404 => CallFailure::UnknownPath,
        429 => CallFailure::RateLimited,
        408 | 409 | 425 | 500..=599 => CallFailure::Server,
        _ if body.contains_any(BAD_KEY_WORDS) => CallFailure::Unauthorized,
        _ if body.contains_any(MODEL_WORDS) => CallFailure::UnknownModel,
        _ => CallFailure::Refused,
    }
}

/// Every vendor mentions the model if it does not know it; a server that lacks the path does not.
fn names_model(body: &ErrorBody) -> bool {
    let message = body.message.as_deref().unwrap_or_default().to_lowercase();
    body.contains_any(&["model", "deployment"]) || message.contains("model")
}

fn day_is_used_up(body: &ErrorBody, wait: Option<Duration>) -> bool {
    body.day_used_up || (body.contains_any(DAY_WORDS) && wait.is_none_or(|wait| wait > SOON_RENEWED))
}

/// The failure for an error without a status.
pub(crate) fn classify_by_words(body: &ErrorBody, wait: Option<Duration>) -> Option<CallFailure> {
    let limited = ["rate_limit", "resource_exhausted", "too many requests"];
    if body.contains_any(&limited) && day_is_used_up(body, wait) {
        return Some(CallFailure::QuotaExhausted);
    }
    let table: [(&[&str], CallFailure); 8] = [
        (FILTER_WORDS, CallFailure::Filtered),
        (CREDIT_WORDS, CallFailure::QuotaExhausted),
        (&limited, CallFailure::RateLimited),
        (MODEL_WORDS, CallFailure::UnknownModel),
        (&["not_found_error"], CallFailure::UnknownModel),
        (&["authentication_error", "permission_error", "invalid_api_key"], CallFailure::Unauthorized),
        (
            &[
                "overloaded",
                "server_error",
                "api_error",
                "internal",
                "unavailable",
                "timeout",
                "limit_reached",
            ],
            CallFailure::Server,
        ),
        (&["invalid_request", "invalid_argument", "context_length", "invalid_prompt"], CallFailure::Refused),
    ];
    table.iter().find(|(words, _)| body.contains_any(words)).map(|(_, failure)| *failure)
}
