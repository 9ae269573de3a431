//! The rules of a provider, with limits of the configuration in place of its defaults.

use std::time::Duration;

use rowmill_core::ports::BatchRules;
use rowmill_types::{DurationText, Problem, ProblemCode, duration_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::support::BatchLimits;

/// How long a job may take to end once it is cancelled. OpenAI documents ten minutes, and the others nothing.
const CANCEL_TIME: Duration = Duration::from_secs(600);

/// Limits of a provider's batch API that replace the known ones, because limits change and differ between accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchLimitOverrides {
    /// The maximum number of requests in a job.
    #[serde(default, alias = "max-requests", skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u64>,
    /// The maximum size of a job in bytes.
    #[serde(default, alias = "max-bytes", skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// The maximum size of one request in bytes.
    #[serde(default, alias = "max-request-bytes", skip_serializing_if = "Option::is_none")]
    pub max_request_bytes: Option<u64>,
    /// The maximum number of input tokens in all unfinished jobs of the account.
    #[serde(default, alias = "max-queued-tokens", skip_serializing_if = "Option::is_none")]
    pub max_queued_tokens: Option<u64>,
    /// The maximum number of requests in all unfinished jobs of the account.
    #[serde(default, alias = "max-queued-requests", skip_serializing_if = "Option::is_none")]
    pub max_queued_requests: Option<u64>,
    /// The maximum number of unfinished jobs of the account.
    #[serde(default, alias = "max-jobs", skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u64>,
    /// How long a job may take before the provider ends it, where the provider lets one choose.
    #[serde(default, with = "duration_text::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<DurationText>")]
    pub window: Option<Duration>,
    /// How long a job may take to end once it is cancelled.
    #[serde(
        default,
        alias = "cancel-time",
        with = "duration_text::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<DurationText>")]
    pub cancel_time: Option<Duration>,
}

impl BatchLimitOverrides {
    /// The limits by name, as far as they are numbers.
    fn numbers(&self) -> [(&'static str, Option<u64>); 6] {
        [
            ("max_requests", self.max_requests),
            ("max_bytes", self.max_bytes),
            ("max_request_bytes", self.max_request_bytes),
            ("max_queued_tokens", self.max_queued_tokens),
            ("max_queued_requests", self.max_queued_requests),
            ("max_jobs", self.max_jobs),
        ]
    }
}

/// The rules of the provider with this name.
pub(super) fn apply_limits(
    provider: &str,
    known: &BatchLimits,
    set: &BatchLimitOverrides,
) -> Result<BatchRules, Problem> {
    let wrong = |what: String| {
        Problem::new(ProblemCode::InvalidConfig, format!("batch limits of `{provider}`: {what}"))
    };
    if let Some((name, _)) = set.numbers().into_iter().find(|(_, limit)| *limit == Some(0)) {
        return Err(wrong(format!("`{name} = 0` allows no request")).hint("use 1 or more, or omit it"));
    }
    Ok(BatchRules {
        provider: provider.to_owned(),
        max_requests: set.max_requests.unwrap_or(known.max_requests),
        max_bytes: set.max_bytes.unwrap_or(known.max_bytes),
        max_request_bytes: set.max_request_bytes.unwrap_or(known.max_request_bytes),
        max_queued_tokens: set.max_queued_tokens.or(known.max_queued_tokens),
        max_queued_requests: set.max_queued_requests.or(known.max_queued_requests),
        max_jobs: set.max_jobs.or(known.max_jobs),
        window: window(known, set.window).map_err(|(what, hint)| wrong(what).hint(hint))?,
        cancel_time: set.cancel_time.unwrap_or(CANCEL_TIME),
        expiry: known.expiry,
        job_key: known.job_key,
    })
}

/// The window in whole hours, or what is wrong with it and what to do.
fn window(known: &BatchLimits, asked: Option<Duration>) -> Result<Duration, (String, String)> {
    let Some(asked) = asked else { return Ok(Duration::from_secs(known.window_hours * 3600)) };
    let (shortest, longest) = known.windows;
    let fits = asked.subsec_nanos() == 0
        && asked.as_secs().is_multiple_of(3600)
        && (shortest..=longest).contains(&(asked.as_secs() / 3600));
    if fits {
        return Ok(asked);
    }
    let hint = match shortest == longest {
        true => format!("the provider always takes {shortest}h; omit `window`"),
        false => format!("use whole hours from {shortest}h to {longest}h"),
    };
    Err((format!("`window = \"{}\"` is not possible", DurationText(asked)), hint))
}
