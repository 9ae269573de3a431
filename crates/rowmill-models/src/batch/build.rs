//! Builds a batch API from a model string and a connection.

use std::sync::Arc;

use rowmill_core::ports::{BatchApi, BatchRules};
use rowmill_http::HttpClient;
use rowmill_types::{Problem, ProblemCode};

use super::limits::{BatchLimitOverrides, apply_limits};
use super::live_settings::without_live_settings;
use super::support::{BatchFamily, BatchSupport};
use super::{anthropic, google, openai};
use crate::build_model::ModelSetup;
use crate::provider_table::PROVIDER_ROWS;

/// Builds the batch API of a model's provider; no call is made yet. `limits` replace those that are known of the provider.
///
/// Settings about how answers are transferred have no effect.
///
/// # Errors
///
/// The provider has no batch API, or settings contradict each other or have a meaning only for live calls, or the key
/// contains characters that a header cannot hold, or a limit is impossible.
pub fn build_batch_api(
    setup: &ModelSetup,
    limits: &BatchLimitOverrides,
    http: &HttpClient,
) -> Result<Arc<dyn BatchApi>, Problem> {
    let support = supported(setup)?;
    let rules = apply_limits(&setup.connection.provider, &support.limits, limits)?;
    let setup = without_live_settings(setup)?;
    let parts = BatchParts { setup: &setup, rules, http };
    match support.family {
        BatchFamily::OpenAi(dialect) => openai::api::build(parts, dialect),
        BatchFamily::Anthropic => anthropic::api::build(parts),
        BatchFamily::Google => google::api::build(parts),
    }
}

/// What the provider of a model allows in its batch API, with `limits` in place of those that are known of it.
///
/// # Errors
///
/// The provider has no batch API, or a limit is impossible.
pub fn batch_rules(setup: &ModelSetup, limits: &BatchLimitOverrides) -> Result<BatchRules, Problem> {
    apply_limits(&setup.connection.provider, &supported(setup)?.limits, limits)
}

/// The names of the providers with a batch API.
#[must_use]
pub fn batch_providers() -> Vec<&'static str> {
    PROVIDER_ROWS.iter().filter(|row| row.quirks.batch.is_some()).map(|row| row.name).collect()
}

/// What the batch API of any family is built from.
#[derive(Debug)]
pub(super) struct BatchParts<'a> {
    pub(super) setup: &'a ModelSetup,
    pub(super) rules: BatchRules,
    pub(super) http: &'a HttpClient,
}

fn supported(setup: &ModelSetup) -> Result<&'static BatchSupport, Problem> {
    setup.connection.quirks.batch.ok_or_else(|| {
        let names = batch_providers().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let what = format!("`{}` has no batch API", setup.connection.provider);
        Problem::new(ProblemCode::InvalidModel, what)
            .hint(format!("use a model of one of {names}, or make live calls"))
    })
}
