//! `rowmill card check`: what is wrong with cards, without running anything.

use rowmill_cards::{Card, CardSet};
use rowmill_core::variables::Variables;
use rowmill_data::Fetcher;
use rowmill_http::HttpClient;
use rowmill_types::Problem;

use super::fast_agent_config::with_fast_agent_config;
use super::load::{LoadedCards, WrittenCards, complete, read};
use super::models::model_of;
use super::servers::check_configured;
use crate::control::Control;
use crate::environment::Environment;
use crate::lanes::Maker;
use crate::work::WorkSpec;

/// What is checked.
#[derive(Debug, Clone, Default)]
pub struct CheckSpec {
    /// Cards, their models and servers. Only one agent is checked, with those that it asks, if the
    /// spec names one.
    pub work: WorkSpec,
    /// Variables of instructions.
    pub variables: crate::spec::VariableFlags,
    /// Where variables are looked up.
    pub environment: Environment,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct CardChecks {
    /// The cards that could be read, in the order in which they were loaded.
    pub cards: Vec<CardCheck>,
    /// What is wrong with the others, or with how cards go together.
    pub problems: Vec<Problem>,
}

/// What was found of one card and of those that it asks.
#[derive(Debug, Clone)]
pub struct CardCheck {
    /// Its name.
    pub name: String,
    /// Its type as it is written in cards.
    pub card_type: &'static str,
    /// The file or address that it came from.
    pub source: String,
    /// Why it cannot work on rows, or be asked by others.
    pub problem: Option<Problem>,
    /// What is skipped, or may not be as it should.
    pub notices: Vec<String>,
}

impl CardChecks {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty() && self.cards.iter().all(|card| card.problem.is_none())
    }
}

/// Checks cards as far as that can be done without starting anything: no model is asked, no server
/// started, and no function imported.
pub(crate) async fn check_cards(
    work: &WorkSpec,
    variables: &Variables,
    environment: &Environment,
    fetcher: &Fetcher<'_>,
) -> Result<CardChecks, Problem> {
    let (written, mut problems) = read(&work.agents.cards, &environment.lookup(), fetcher).await?;
    let mut cards = Vec::new();
    match CardSet::new(written.cards.clone()) {
        Ok(set) => {
            let wanted = match &work.agents.agent {
                Some(agent) if problems.is_empty() => Some(set.worker(Some(agent))?.name.clone()),
                other => other.clone(),
            };
            for card in
                set.cards().iter().filter(|card| wanted.as_ref().is_none_or(|name| *name == card.name))
            {
                cards.push(check(work, card, (&written, &set), (variables, fetcher, environment)).await);
            }
        }
        // Whoever asks a card that could not be read is told of that card.
        Err(_) if !problems.is_empty() => {
            cards.extend(written.cards.iter().map(|card| checked(card, None, Vec::new())));
        }
        Err(problem) => problems.push(problem),
    }
    Ok(CardChecks { cards, problems })
}

async fn check(
    work: &WorkSpec,
    card: &Card,
    (written, set): (&WrittenCards, &CardSet),
    (variables, fetcher, environment): (&Variables, &Fetcher<'_>, &Environment),
) -> CardCheck {
    let loaded = complete(written, set.clone(), card.name.clone(), (variables, fetcher)).await;
    match loaded {
        Err(problem) => checked(card, Some(problem), Vec::new()),
        Ok(loaded) => {
            let members = loaded.set.members(&loaded.worker);
            // Servers and models may stand in the configuration of fast-agent, as for a run.
            let work = with_fast_agent_config(work, Some(&loaded), &environment.lookup(), &|_| {});
            let problem = work.and_then(|work| {
                check_configured(&work, &members)?;
                check_models(&work, &members, (fetcher.http, environment))
            });
            checked(card, problem.err(), notices(&loaded))
        }
    }
}

fn checked(card: &Card, problem: Option<Problem>, notices: Vec<String>) -> CardCheck {
    CardCheck {
        name: card.name.clone(),
        card_type: card.kind.card_type().name(),
        source: card.source.clone(),
        problem,
        notices,
    }
}

/// Whether model strings can be read; keys are not looked for.
fn check_models(
    work: &WorkSpec,
    members: &[&Card],
    (http, environment): (&HttpClient, &Environment),
) -> Result<(), Problem> {
    let control = Control::quiet_in(environment.clone());
    let maker = Maker::new(work, http, &control)?;
    for card in members.iter().filter(|card| card.model.is_some()) {
        model_of(work, &maker, card, members.first().copied())?;
    }
    Ok(())
}

/// What a person is told of cards that can be used.
pub(crate) fn notices(loaded: &LoadedCards) -> Vec<String> {
    let ignored = loaded.ignored.iter().map(|(card, field)| {
        format!("`{field}` of the agent card `{card}` means nothing in a batch and is passed over")
    });
    loaded.notices.iter().cloned().chain(ignored).collect()
}
