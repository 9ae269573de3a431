//! Mistakes in a card, reported with the line and a suggestion.

use rowmill_types::{Problem, ProblemCode};

/// The page that lists every field.
const DOCS: &str = "`docs/agent-cards.md` lists the fields of every type";

/// A mistake in a card, without the name of the card.
#[derive(Debug)]
pub(crate) struct CardMistake {
    pub(crate) line: Option<u64>,
    message: String,
    cause: Option<String>,
    hint: String,
}

impl CardMistake {
    /// A mistake in a line.
    pub(crate) fn at(line: u64, message: impl Into<String>) -> Self {
        // The parser has no line for what is missing from the text.
        let line = (line > 0).then_some(line);
        Self { line, message: message.into(), cause: None, hint: DOCS.to_owned() }
    }

    /// A mistake of the card as a whole.
    pub(crate) fn in_card(message: impl Into<String>) -> Self {
        Self::at(0, message)
    }

    /// Replaces the hint, which refers to the documentation, by a specific one.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds the message of another system as the cause.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds the name of the card.
    pub(crate) fn into_problem(self, source: &str) -> Problem {
        let message = match self.line {
            Some(line) => format!("`{source}`, line {line}: {}", self.message),
            None => format!("`{source}`: {}", self.message),
        };
        let problem = Problem::new(ProblemCode::InvalidCard, message).hint(self.hint);
        match self.cause {
            Some(cause) => problem.cause(cause),
            None => problem,
        }
    }
}

/// Parsing continues after a mistake if it can, so that all mistakes are reported together.
impl From<CardMistake> for Vec<CardMistake> {
    fn from(mistake: CardMistake) -> Self {
        vec![mistake]
    }
}

/// The maximum number of problems in one message.
const MOST_LISTED: usize = 20;

/// Combines all problems of some cards into one: a single problem stays as it is, several become a
/// list.
#[must_use]
pub fn join_problems(mut problems: Vec<Problem>) -> Problem {
    if problems.len() == 1
        && let Some(only) = problems.pop()
    {
        return only;
    }
    let mut message = format!("the agent cards have {} problems:", problems.len());
    for (index, Problem { message: what, cause, hint, .. }) in problems.iter().take(MOST_LISTED).enumerate() {
        message.push_str(&format!("\n  {}", what.with_mention_markers()));
        if let Some(cause) = cause {
            message.push_str(&format!(": {}", cause.with_mention_markers()));
        }
        // A hint that several consecutive problems share is shown only after the last of them.
        let is_repeated = problems.get(index + 1).is_some_and(|next| next.hint == *hint);
        if let Some(hint) = hint.as_ref().filter(|hint| **hint != DOCS && !is_repeated) {
            message.push_str(&format!("\n    help: {}", hint.with_mention_markers()));
        }
    }
    if let more @ 1.. = problems.len().saturating_sub(MOST_LISTED) {
        message.push_str(&format!("\n  and {more} more"));
    }
    let hint = format!("correct all of them and check with `rowmill card check`; {DOCS}");
    Problem::new(ProblemCode::InvalidCard, message).hint(hint)
}

/// The most similar candidate, if it is similar enough.
pub(crate) fn nearest<'n>(name: &str, candidates: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_lowercase();
    let bound = name.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= bound)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "did you mean …?", followed by a list of the valid names.
pub(crate) fn suggestion<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str> + Clone,
    listed_as: &str,
) -> String {
    let near = nearest(name, candidates.clone());
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    format!("{near}{listed_as}: {}", backticked_list(candidates))
}

/// Names in backticks.
pub(crate) fn backticked_list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
