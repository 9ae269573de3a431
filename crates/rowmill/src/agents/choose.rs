//! Selects what answers rows: a model, or the agents of cards.

use rowmill_core::validate::ResultSchema;
use rowmill_http::HttpClient;
use rowmill_types::{Problem, ProblemCode};

use super::fast_agent_config::with_fast_agent_config;
use super::stage::{Stage, StageSettings, plain, stage};
use crate::control::Control;
use crate::lanes::{Asks, Maker};
use crate::spec::RunSpec;
use crate::texts::Texts;

/// The model that answers rows if no card describes an agent.
pub(crate) fn model(
    spec: &RunSpec,
    texts: &mut Texts,
    http: &HttpClient,
    control: &Control,
) -> Result<Option<Stage>, Problem> {
    if texts.cards.is_some() {
        return Ok(None);
    }
    let schema = texts.schema.take();
    let asks = asks(spec, texts, schema.as_ref());
    let traced = spec.traces.is_some();
    let work = with_fast_agent_config(&spec.work, None, &control.environment.lookup(), &*control.notice)?;
    plain(&work, &Maker::new(&work, http, control)?, &asks, (schema, traced)).map(Some)
}

/// Sets up the agents of cards, and starts their tools.
pub(crate) async fn of_cards(
    spec: &RunSpec,
    texts: &mut Texts,
    http: &HttpClient,
    control: &Control,
) -> Result<Stage, Problem> {
    let lookup = control.environment.lookup();
    let work = with_fast_agent_config(&spec.work, texts.cards.as_ref(), &lookup, &*control.notice)?;
    let maker = Maker::new(&work, http, control)?;
    let schema = texts.schema.take();
    match &texts.cards {
        Some(cards) => {
            let (traced, redactor) = (spec.traces.is_some(), control.environment.redactor()?);
            stage(&work, &maker, cards, StageSettings { schema, traced, redactor }).await
        }
        None => Err(Problem::new(ProblemCode::Internal, "there are no cards")),
    }
}

/// How to call a model without a card.
pub(crate) fn asks(spec: &RunSpec, texts: &Texts, schema: Option<&ResultSchema>) -> Asks {
    Asks {
        models: std::iter::once(&spec.work.model).chain(&spec.work.fallback_models).cloned().collect(),
        instruction: texts.instruction.clone(),
        schema: schema.map(|schema| schema.value().clone()),
        ..Asks::default()
    }
}
