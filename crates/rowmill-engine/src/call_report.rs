//! The reports of model calls.

use std::time::Duration;

use rowmill_core::record::CallReport;
use rowmill_types::{CallError, CallTiming, Completion, RowErrorKind};

use crate::endpoint::ModelEndpoint;

/// The report of a call to a model endpoint that took this long.
pub(crate) fn call_report(
    outcome: &mut Result<Completion, CallError>,
    endpoint: &ModelEndpoint,
    took: Duration,
) -> CallReport {
    match outcome {
        // Fields that only the report needs are moved, not copied.
        Ok(completion) => CallReport {
            error: None,
            status: None,
            timing: completion.timing,
            usage: completion.usage,
            raw_usage: completion.raw_usage.take(),
            model: completion.model.take(),
            service_tier: completion.service_tier.take(),
            cost: endpoint
                .price_of(completion)
                .zip(completion.usage)
                .map(|(price, usage)| price.cost(&usage)),
            agent: None,
            hosted_tools: completion.hosted_tools.clone(),
            output_cap: None,
            batch: completion.batch.clone(),
            beside_jobs: endpoint.batch_terms.is_some() && completion.batch.is_none(),
        },
        Err(error) => {
            let timing = CallTiming { first_token: None, response: took };
            let report = unanswered_call_report(error.failure.error_kind(), error.status, timing);
            let beside_jobs = endpoint.batch_terms.is_some() && error.batch.is_none();
            CallReport { batch: error.batch.clone(), beside_jobs, ..report }
        }
    }
}

/// The report of a call without an answer.
pub(crate) fn unanswered_call_report(
    kind: RowErrorKind,
    status: Option<u16>,
    timing: CallTiming,
) -> CallReport {
    CallReport {
        error: Some(kind),
        status,
        timing,
        usage: None,
        raw_usage: None,
        model: None,
        service_tier: None,
        cost: None,
        agent: None,
        hosted_tools: None,
        output_cap: None,
        batch: None,
        beside_jobs: false,
    }
}
