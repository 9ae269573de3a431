//! Turns the errors of the parser into refusals that say what to write.

use rowmill_types::settings::SAMPLE;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::Location;

use crate::expression::refusal::{QueryPosition, QueryRefusal};

/// The position of a byte of a text.
pub(super) fn location(text: &str, at: usize) -> Option<Location> {
    let before = text.get(..at)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    Some(Location { line: u64::try_from(line).ok()?, column: u64::try_from(column).ok()? })
}

/// The refusal for a parser error, whose message ends with the position.
pub(super) fn parse_refusal(error: &ParserError, text: &str) -> QueryRefusal {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message.clone(),
        ParserError::RecursionLimitExceeded => {
            return QueryRefusal::new("parentheses are nested too deeply", QueryPosition::default());
        }
    };
    let (what, place) = match message.split_once(" at Line: ") {
        Some((what, place)) => (what.to_owned(), place_in(place)),
        None => (message, QueryPosition::default()),
    };
    if let Some(refusal) = known_form(&what, place, text) {
        return refusal;
    }
    let what = what.replace("Expected: ", "expected ").replace(", found: ", ", found `");
    let what = if what.contains(", found `") { format!("{what}`") } else { what };
    let what = what.replace("`EOF`", "the end");
    let place =
        if what.ends_with("the end") { QueryPosition(location(text, text.trim_end().len())) } else { place };
    QueryRefusal::new(what, place)
}

/// The refusal for a form of DuckDB that the parser does not know and whose error would not say so.
fn known_form(what: &str, place: QueryPosition, text: &str) -> Option<QueryRefusal> {
    if what.contains("byte length") {
        let word = text.to_ascii_lowercase().find("tablesample");
        let place = word.and_then(|at| location(text, at)).map_or(place, |at| QueryPosition(Some(at)));
        return Some(samples(place));
    }
    let is_in = what.starts_with("Expected: (") && ends_with_in(text, place);
    is_in.then(|| {
        QueryRefusal::new("`IN` without parentheses is not supported", place)
            .hint("write `list_contains(tags, 'a')` if the column `tags` has lists, or `x IN ('a', 'b')`")
    })
}

/// The refusal for samples.
pub(super) fn samples(place: QueryPosition) -> QueryRefusal {
    QueryRefusal::new("samples are not supported", place)
        .hint(format!("use {sample} for a sample", sample = SAMPLE.with_value("N")))
}

/// Whether the text before a position ends with the word `IN`.
fn ends_with_in(text: &str, place: QueryPosition) -> bool {
    let words = || {
        let Location { line, column } = place.0?;
        let before = usize::try_from(line).ok()?.checked_sub(1)?;
        let columns = usize::try_from(column).ok()?.checked_sub(1)?;
        let lines = text.lines().take(before).map(str::to_owned);
        let last = text.lines().nth(before)?.chars().take(columns).collect::<String>();
        Some(lines.chain([last]).collect::<Vec<_>>().join(" "))
    };
    let before = words().unwrap_or_default();
    before.split_whitespace().next_back().is_some_and(|word| word.eq_ignore_ascii_case("in"))
}

fn place_in(text: &str) -> QueryPosition {
    let numbers = text.split(", Column: ").map(|number| number.trim().parse().ok());
    let mut numbers = numbers.collect::<Option<Vec<u64>>>().unwrap_or_default().into_iter();
    QueryPosition(numbers.next().zip(numbers.next()).map(|(line, column)| Location { line, column }))
}
