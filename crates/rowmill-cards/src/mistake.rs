//! Mistakes in a card, told with the line and with what was probably meant.

use rowmill_types::{Problem, ProblemCode};

/// The page that lists every field.
const DOCS: &str = "`docs/agent-cards.md` lists the fields of every type";

/// What is wrong with a card, before it is known which one it is.
#[derive(Debug)]
pub(crate) struct Mistake {
    line: Option<u64>,
    message: String,
    cause: Option<String>,
    hint: String,
}

impl Mistake {
    /// A mistake in a line.
    pub(crate) fn at(line: u64, message: impl Into<String>) -> Self {
        // The parser has no line for what is not in the text.
        let line = (line > 0).then_some(line);
        Self { line, message: message.into(), cause: None, hint: DOCS.to_owned() }
    }

    /// A mistake of the card as a whole.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self::at(0, message)
    }

    /// Says what to do instead of naming the page.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Adds what another system said.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Says which card it is.
    pub(crate) fn of(self, source: &str) -> Problem {
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

/// The candidate that differs least, if it is near enough to be meant.
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

/// "did you mean …?" before a list of what there is.
pub(crate) fn suggestion<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str> + Clone,
    listed_as: &str,
) -> String {
    let near = nearest(name, candidates.clone());
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    format!("{near}{listed_as}: {}", listed(candidates))
}

/// Names in backticks.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
