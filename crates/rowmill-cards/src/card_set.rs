//! Sets of cards that refer to each other.

use std::collections::HashMap;

use rowmill_types::settings::{AGENT, AGENT_CARD};
use rowmill_types::{DiagnosticText, Problem, ProblemCode};

use crate::AgentCard;
use crate::mistake::{CardMistake, backticked_list, join_problems, suggestion};

/// A set of cards with unique names and existing children, in which no agent uses itself, even
/// indirectly.
#[derive(Debug, Clone, PartialEq)]
pub struct CardSet {
    cards: Vec<AgentCard>,
    places: HashMap<String, usize>,
}

impl CardSet {
    /// Creates a set of cards.
    ///
    /// # Errors
    ///
    /// Two cards have the same name, a child is missing, or agents use each other in a circle.
    pub fn new(cards: Vec<AgentCard>) -> Result<Self, Problem> {
        let mut places: HashMap<String, usize> = HashMap::with_capacity(cards.len());
        for (index, card) in cards.iter().enumerate() {
            if let Some(earlier) = places.insert(card.name.clone(), index).and_then(|place| cards.get(place))
            {
                let message = format!(
                    "two agent cards have the name `{}`: `{}` and `{}`",
                    card.name, earlier.source, card.source
                );
                return Err(problem(message).hint("set a different `name` for one of them"));
            }
        }
        let set = Self { cards, places };
        set.check_children()?;
        set.check_circles()?;
        Ok(set)
    }

    /// The cards, in the order in which they were loaded.
    #[must_use]
    pub fn cards(&self) -> &[AgentCard] {
        &self.cards
    }

    /// The cards, for completing them: names and children must not change.
    pub fn cards_mut(&mut self) -> &mut [AgentCard] {
        &mut self.cards
    }

    /// The card with this name.
    #[must_use]
    pub fn card(&self, name: &str) -> Option<&AgentCard> {
        self.places.get(name).and_then(|place| self.cards.get(*place))
    }

    /// The card that works on rows: the one that is `wanted`, otherwise the only one that is not just
    /// for other agents, otherwise the only default among these.
    ///
    /// # Errors
    ///
    /// The wanted card does not exist or is only for other agents, or the choice is ambiguous.
    pub fn choose_worker(&self, wanted: Option<&str>) -> Result<&AgentCard, Problem> {
        let runnable: Vec<&AgentCard> = self.cards.iter().filter(|card| !card.tool_only).collect();
        let names = || runnable.iter().map(|card| card.name.as_str());
        if let Some(wanted) = wanted {
            let Some(card) = self.card(wanted) else {
                let message = format!("no agent card has the name given to {AGENT}: `{wanted}`");
                return Err(problem(message).hint(suggestion(wanted, names().collect::<Vec<_>>(), "loaded")));
            };
            if card.tool_only {
                let message = format!("the agent given to {AGENT} is `tool_only`: `{wanted}`");
                return Err(
                    problem(message).hint(format!("agents that can be run: {}", backticked_list(names())))
                );
            }
            return Ok(card);
        }
        let defaults: Vec<&AgentCard> = runnable.iter().copied().filter(|card| card.default).collect();
        match (runnable.as_slice(), defaults.as_slice()) {
            ([card], _) | (_, [card]) => Ok(card),
            ([], _) => Err(problem("none of the loaded agent cards can be run: all are `tool_only`")
                .hint("remove `tool_only` from the card that should process the rows")),
            _ => Err(problem(format!("several agents could process the rows: {}", backticked_list(names())))
                .hint(format!("choose one with {AGENT}, or mark one card with `default: true`"))),
        }
    }

    /// The cards that a worker needs: its own first, then its children, each once.
    #[must_use]
    pub fn cards_of_worker(&self, worker: &str) -> Vec<&AgentCard> {
        let mut members: Vec<&AgentCard> = self.card(worker).into_iter().collect();
        let mut next = 0;
        while let Some(card) = members.get(next).copied() {
            next += 1;
            for (_, child) in card.kind.children() {
                if let Some(child) = self.card(child)
                    && members.iter().all(|member| member.name != child.name)
                {
                    members.push(child);
                }
            }
        }
        members
    }

    fn check_children(&self) -> Result<(), Problem> {
        let names: Vec<_> = self.cards.iter().map(|card| card.name.as_str()).collect();
        let mut problems = Vec::new();
        for card in &self.cards {
            for (index, (field, child)) in card.kind.children().into_iter().enumerate() {
                if self.card(child).is_none() {
                    let line = card.child_lines.get(index).copied().unwrap_or_default();
                    let message = format!("`{field}` names an agent that was not loaded: `{child}`");
                    let hint = suggestion(child, names.iter().copied(), "loaded");
                    let hint = format!("{hint}; add the card or its folder with another {AGENT_CARD}");
                    problems.push(CardMistake::at(line, message).hint(hint).into_problem(&card.source));
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(join_problems(problems)) }
    }

    /// Follows the children of every card to find circles. It uses its own stack, because a chain of
    /// cards may be long.
    fn check_circles(&self) -> Result<(), Problem> {
        let mut finished = vec![false; self.cards.len()];
        for start in 0..self.cards.len() {
            let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut entered = vec![start];
            while let Some(place) = entered.pop() {
                if !finished.get(place).copied().unwrap_or(true) {
                    if let Some(from) = path.iter().position(|(earlier, _)| *earlier == place) {
                        return Err(self.circle(path.iter().skip(from).map(|(place, _)| *place), place));
                    }
                    path.push((place, self.children_of(place)));
                }
                while let Some((place, children)) = path.last_mut() {
                    if let Some(child) = children.pop() {
                        entered.push(child);
                        break;
                    }
                    if let Some(done) = finished.get_mut(*place) {
                        *done = true;
                    }
                    path.pop();
                }
            }
        }
        Ok(())
    }

    /// The indices of a card's children, in reverse order.
    fn children_of(&self, place: usize) -> Vec<usize> {
        let children = self.cards.get(place).map(|card| card.kind.children()).unwrap_or_default();
        children.into_iter().rev().filter_map(|(_, child)| self.places.get(child).copied()).collect()
    }

    fn circle(&self, path: impl Iterator<Item = usize>, again: usize) -> Problem {
        let cards: Vec<&AgentCard> = path.chain([again]).filter_map(|place| self.cards.get(place)).collect();
        let names: Vec<_> = cards.iter().map(|card| format!("`{}`", card.name)).collect();
        let message = format!("agents call each other in a cycle: {}", names.join(" -> "));
        let hint = "remove one of these children from its card";
        let (Some(first), Some(second)) = (cards.first(), cards.get(1)) else {
            return problem(message).hint(hint);
        };
        let child = first.kind.children().iter().position(|(_, child)| *child == second.name);
        let line = child.and_then(|index| first.child_lines.get(index)).copied().unwrap_or_default();
        CardMistake::at(line, message).hint(hint).into_problem(&first.source)
    }
}

fn problem(message: impl Into<DiagnosticText>) -> Problem {
    Problem::new(ProblemCode::InvalidCard, message)
}
