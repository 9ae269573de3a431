//! Selects what answers rows: a model, or the agents of cards.

use rowmill_core::validate::ResultSchema;
use rowmill_http::HttpClient;
use rowmill_types::{Problem, ProblemCode};

use super::fast_agent_config::with_fast_agent_config;
use super::setup::{AgentSetup, AgentSetupSettings, set_up_agents, set_up_model};
use crate::control::RunControl;
use crate::endpoints::{ModelFactory, ModelRequest};
use crate::spec::RunSpec;
use crate::texts::RunInputTexts;

/// The model that answers rows if no card describes an agent.
pub(crate) fn set_up_plain_model(
    spec: &RunSpec,
    texts: &mut RunInputTexts,
    http: &HttpClient,
    control: &RunControl,
) -> Result<Option<AgentSetup>, Problem> {
    if texts.cards.is_some() {
        return Ok(None);
    }
    let schema = texts.schema.take();
    let asks = plain_model_request(spec, texts, schema.as_ref());
    let traced = spec.traces.is_some();
    let work = with_fast_agent_config(&spec.work, None, &control.environment.lookup(), &*control.notice)?;
    set_up_model(&work, &ModelFactory::new(&work, http, control)?, &asks, (schema, traced)).map(Some)
}

/// Sets up the agents of cards, and starts their tools.
pub(crate) async fn set_up_card_agents(
    spec: &RunSpec,
    texts: &mut RunInputTexts,
    http: &HttpClient,
    control: &RunControl,
) -> Result<AgentSetup, Problem> {
    let lookup = control.environment.lookup();
    let work = with_fast_agent_config(&spec.work, texts.cards.as_ref(), &lookup, &*control.notice)?;
    let maker = ModelFactory::new(&work, http, control)?;
    let schema = texts.schema.take();
    match &texts.cards {
        Some(cards) => {
            let (traced, redactor) = (spec.traces.is_some(), control.environment.redactor()?);
            set_up_agents(&work, &maker, cards, AgentSetupSettings { schema, traced, redactor }).await
        }
        None => Err(Problem::new(ProblemCode::Internal, "there are no cards")),
    }
}

/// How to call a model without a card.
pub(crate) fn plain_model_request(
    spec: &RunSpec,
    texts: &RunInputTexts,
    schema: Option<&ResultSchema>,
) -> ModelRequest {
    ModelRequest {
        models: std::iter::once(&spec.work.model).chain(&spec.work.fallback_models).cloned().collect(),
        instruction: texts.instruction.clone(),
        schema: schema.map(|schema| schema.value().clone()),
        ..ModelRequest::default()
    }
}
