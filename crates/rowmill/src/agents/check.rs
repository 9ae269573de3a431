//! `rowmill card check`: finds mistakes in cards without running anything.

use rowmill_cards::{AgentCard, CardSet};
use rowmill_core::variables::InstructionVariables;
use rowmill_data::Fetcher;
use rowmill_http::HttpClient;
use rowmill_types::Problem;

use super::fast_agent_config::with_fast_agent_config;
use super::load::{LoadedCards, ParsedCards, complete_cards, read_cards};
use super::models::model_string_for_card;
use super::servers::check_servers_defined;
use crate::control::RunControl;
use crate::endpoints::ModelFactory;
use crate::environment::RunEnvironment;
use crate::work_spec::WorkSpec;

/// The parameters of a check.
#[derive(Debug, Clone, Default)]
pub struct CardCheckSpec {
    /// Cards, their models and servers. If the spec names an agent, only this agent and those that it
    /// uses are checked.
    pub work: WorkSpec,
    /// The variables of instructions.
    pub variables: crate::spec::InstructionVariableOptions,
    /// Where variables are looked up.
    pub environment: RunEnvironment,
}

/// The result of a check.
#[derive(Debug, Clone)]
pub struct CardChecks {
    /// The cards that could be read, in the order in which they were loaded.
    pub cards: Vec<CardCheck>,
    /// Problems with the other cards, or with how the cards fit together.
    pub problems: Vec<Problem>,
}

/// The result for one card and the agents that it uses.
#[derive(Debug, Clone)]
pub struct CardCheck {
    /// The name.
    pub name: String,
    /// The card type as written in cards.
    pub card_type: &'static str,
    /// The file or address that the card was loaded from.
    pub source: String,
    /// Why the agent cannot work on rows, or be used by others.
    pub problem: Option<Problem>,
    /// Warnings about what is ignored or may be wrong.
    pub notices: Vec<String>,
}

impl CardChecks {
    /// Whether the card has no problem.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty() && self.cards.iter().all(|card| card.problem.is_none())
    }
}

/// Checks cards as far as possible without starting anything: no model is called, no server started,
/// and no function imported.
pub(crate) async fn check_cards(
    work: &WorkSpec,
    variables: &InstructionVariables,
    environment: &RunEnvironment,
    fetcher: &Fetcher<'_>,
) -> Result<CardChecks, Problem> {
    let (written, mut problems) = read_cards(&work.agents.cards, &environment.lookup(), fetcher).await?;
    let mut cards = Vec::new();
    match CardSet::new(written.cards.clone()) {
        Ok(set) => {
            let wanted = match &work.agents.agent {
                Some(agent) if problems.is_empty() => Some(set.choose_worker(Some(agent))?.name.clone()),
                other => other.clone(),
            };
            for card in
                set.cards().iter().filter(|card| wanted.as_ref().is_none_or(|name| *name == card.name))
            {
                cards.push(check(work, card, (&written, &set), (variables, fetcher, environment)).await);
            }
        }
        // If the requested card is one that could not be read, its own problem has been reported.
        Err(_) if !problems.is_empty() => {
            cards.extend(written.cards.iter().map(|card| checked(card, None, Vec::new())));
        }
        Err(problem) => problems.push(problem),
    }
    Ok(CardChecks { cards, problems })
}

async fn check(
    work: &WorkSpec,
    card: &AgentCard,
    (written, set): (&ParsedCards, &CardSet),
    (variables, fetcher, environment): (&InstructionVariables, &Fetcher<'_>, &RunEnvironment),
) -> CardCheck {
    let loaded = complete_cards(written, set.clone(), card.name.clone(), (variables, fetcher)).await;
    match loaded {
        Err(problem) => checked(card, Some(problem), Vec::new()),
        Ok(loaded) => {
            let members = loaded.set.cards_of_worker(&loaded.worker);
            // Servers and models may be defined in the configuration of fast-agent, as for a run.
            let work = with_fast_agent_config(work, Some(&loaded), &environment.lookup(), &|_| {});
            let problem = work.and_then(|work| {
                check_servers_defined(&work, &members)?;
                check_models(&work, &members, (fetcher.http, environment))
            });
            checked(card, problem.err(), card_notices(&loaded))
        }
    }
}

fn checked(card: &AgentCard, problem: Option<Problem>, notices: Vec<String>) -> CardCheck {
    CardCheck {
        name: card.name.clone(),
        card_type: card.kind.card_type().name(),
        source: card.source.clone(),
        problem,
        notices,
    }
}

/// Checks that model strings can be parsed; keys are not looked up.
fn check_models(
    work: &WorkSpec,
    members: &[&AgentCard],
    (http, environment): (&HttpClient, &RunEnvironment),
) -> Result<(), Problem> {
    let control = RunControl::silent_in(environment.clone());
    let maker = ModelFactory::new(work, http, &control)?;
    for card in members.iter().filter(|card| card.model.is_some()) {
        model_string_for_card(work, &maker, card, members.first().copied())?;
    }
    Ok(())
}

/// Warnings about cards that can be used.
pub(crate) fn card_notices(loaded: &LoadedCards) -> Vec<String> {
    let ignored = loaded.ignored.iter().map(|(card, field)| {
        format!("`{field}` of the agent card `{card}` has no effect in a batch and is ignored")
    });
    loaded.notices.iter().cloned().chain(ignored).collect()
}
