//! Which model a card asks, and how.

use rowmill_cards::{Card, RequestParams, ServiceTier};
use rowmill_types::{Problem, ProblemCode};

use crate::lanes::Access;
use crate::work::WorkSpec;

/// The model string of a card. `--model` replaces the worker's own; the others keep theirs, and
/// those that have none ask the model of the run, or else the worker's.
pub(super) fn model_of(spec: &WorkSpec, card: &Card, worker: Option<&Card>) -> Result<String, Problem> {
    let is_worker = worker.is_some_and(|worker| worker.name == card.name);
    let given = spec.agents.model_given.then_some(&spec.model);
    let default = Some(&spec.model).filter(|model| !model.is_empty());
    let of_worker = worker.and_then(|worker| worker.model.as_ref());
    let chosen = match is_worker {
        true => given.or(card.model.as_ref()).or(default),
        false => card.model.as_ref().or(default).or(of_worker),
    };
    let speaks = card.kind.card_type().speaks();
    match chosen {
        Some(model) => Ok(with_settings(model, card)),
        None if !speaks => Ok(String::new()),
        None => Err(Problem::new(ProblemCode::InvalidCard, format!("`{}` names no model", card.source))
            .hint("put `model:` into the card, or use `--model`; `--model simulated` needs no key")),
    }
}

/// Models that answer in this process have no use for what a card says of sampling, and a card
/// must be easy to try with them.
const BUILTIN: [&str; 5] = ["passthrough", "playback", "silent", "simulated", "slow"];

/// What the model string says itself stands after what the card says, because the last one wins.
fn with_settings(model: &str, card: &Card) -> String {
    let (name, query) = model.split_once('?').unwrap_or((model, ""));
    if BUILTIN.contains(&name) {
        return model.to_owned();
    }
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

/// The key that a card brings for its model, or for the one that it asks where it names none.
pub(super) fn access_of(card: &Card, asked: &str) -> Option<Access> {
    let model = card.model.clone().unwrap_or_else(|| asked.to_owned());
    card.api_key.clone().map(|key| Access { model, key: Some(key), base_url: None })
}
