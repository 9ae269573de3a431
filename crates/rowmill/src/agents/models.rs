//! Which model a card uses, and with which settings.

use rowmill_cards::{AgentCard, RequestParams, ServiceTier};
use rowmill_types::settings::MODEL;
use rowmill_types::{Problem, ProblemCode};

use crate::endpoints::{ModelFactory, ProviderAccess};
use crate::work_spec::WorkSpec;

/// The model string of a card. `--model` replaces the worker's own; the other cards keep theirs, and
/// those without a model use the model of the run, or else the worker's.
pub(super) fn model_string_for_card(
    spec: &WorkSpec,
    maker: &ModelFactory<'_>,
    card: &AgentCard,
    worker: Option<&AgentCard>,
) -> Result<String, Problem> {
    let is_worker = worker.is_some_and(|worker| worker.name == card.name);
    let given = spec.agents.model_given.then_some(&spec.model);
    let default = Some(&spec.model).filter(|model| !model.is_empty());
    let of_worker = worker.and_then(|worker| named_model(spec, worker));
    let chosen = match is_worker {
        true => given.or(named_model(spec, card)).or(default),
        false => named_model(spec, card).or(default).or(of_worker),
    };
    let speaks = card.kind.card_type().asks_model();
    match chosen {
        Some(model) if !speaks => {
            Ok(maker.parse_model(model).map_or_else(|_| model.clone(), |model| model.to_string()))
        }
        Some(model) => resolved(maker, model, card),
        None if !speaks => Ok(String::new()),
        None => {
            Err(Problem::new(ProblemCode::InvalidCard, format!("`{}` does not name a model", card.source))
                .hint(format!(
                    "add `model:` to the card, or use {MODEL}; {model} needs no key",
                    model = MODEL.with_value("simulated")
                )))
        }
    }
}

/// Models that answer in this process ignore a card's sampling settings, so that a card is easy to try
/// with them.
const BUILTIN: [&str; 5] = ["passthrough", "playback", "silent", "simulated", "slow"];

/// The reference to the default model in cards.
const USUAL: &str = "$system.default";

/// The model that a card names. `$system.default` is overridden by `--model`, and if nothing defines
/// it, it means the model of the run.
fn named_model<'a>(spec: &'a WorkSpec, card: &'a AgentCard) -> Option<&'a String> {
    let model = card.model.as_ref()?;
    let is_defined = spec.aliases.model_of_reference(model).is_some();
    let gives_way = spec.agents.model_given || (!is_defined && !spec.model.is_empty());
    Some(if model == USUAL && gives_way { &spec.model } else { model })
}

/// The full model string, with the card's settings for requests.
fn resolved(maker: &ModelFactory<'_>, model: &str, card: &AgentCard) -> Result<String, Problem> {
    let of_card = |mut problem: Problem| {
        if card.model.as_deref() == Some(model) {
            let line = card.model_line.map(|line| format!(", line {line}")).unwrap_or_default();
            problem.message =
                format!("`{}`{line}: {}", card.source, problem.message.with_mention_markers()).into();
        }
        problem
    };
    let whole = maker.aliases().expand(model).map_err(of_card)?;
    let name = whole.split_once('?').map_or(whole.as_str(), |(name, _)| name);
    let text = if BUILTIN.contains(&name) { model.to_owned() } else { with_settings(model, card) };
    maker.parse_model(&text).map(|model| model.to_string()).map_err(of_card)
}

/// Adds the card's settings to the model string. Settings of the model string itself come last, because
/// the last one wins.
fn with_settings(model: &str, card: &AgentCard) -> String {
    let (name, query) = model.split_once('?').unwrap_or((model, ""));
    let mut settings = settings(&card.request);
    let hosted = [
        ("web_search", card.hosted.web_search),
        ("web_fetch", card.hosted.web_fetch),
        ("x_search", card.hosted.x_search),
    ];
    settings.extend(hosted.into_iter().filter_map(|(key, on)| Some(format!("{key}={}", on?))));
    if !query.is_empty() {
        settings.push(query.to_owned());
    }
    if settings.is_empty() { name.to_owned() } else { format!("{name}?{}", settings.join("&")) }
}

fn settings(request: &RequestParams) -> Vec<String> {
    let RequestParams { max_tokens, temperature, top_p, top_k, min_p, service_tier, .. } = request;
    let numbers = [
        ("temperature", *temperature),
        ("top_p", *top_p),
        ("min_p", *min_p),
        ("presence_penalty", request.presence_penalty),
        ("frequency_penalty", request.frequency_penalty),
        ("repetition_penalty", request.repetition_penalty),
    ];
    let mut settings: Vec<String> =
        numbers.into_iter().filter_map(|(key, number)| Some(format!("{key}={}", number?))).collect();
    settings.extend(max_tokens.map(|most| format!("max_tokens={most}")));
    settings.extend(top_k.map(|most| format!("top_k={most}")));
    settings.extend(service_tier.map(|tier| match tier {
        ServiceTier::Fast => "service_tier=fast".to_owned(),
        ServiceTier::Flex => "service_tier=flex".to_owned(),
    }));
    settings
}

/// The key of a card for its model, or for the model that it uses if it names none.
pub(super) fn provider_access_of_card(card: &AgentCard, asked: &str) -> Option<ProviderAccess> {
    let own = card.model.clone().filter(|model| model != USUAL);
    let model = own.unwrap_or_else(|| asked.to_owned());
    card.api_key.clone().map(|key| ProviderAccess { model, key: Some(key), base_url: None })
}
