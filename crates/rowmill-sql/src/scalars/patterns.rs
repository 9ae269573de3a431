//! `LIKE` and `ILIKE`.

use super::texts::{lower, word};
use crate::expression::coerce::{adapted, folded};
use crate::expression::refusal::{Bound, Refusal, TextPlace};
use crate::expression::typed::Typed;
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

/// Whether matching is case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternCase {
    Kept,
    Ignored,
}

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternPart {
    Letter(char),
    AnyLetter,
    AnyText,
}

/// `text LIKE pattern`, with the character that escapes `%` and `_`.
pub(crate) fn like(
    operands: [Typed; 2],
    case: PatternCase,
    escape: Option<char>,
    place: TextPlace,
) -> Bound<Typed> {
    let text = |operand: Typed| {
        let wrong = Refusal::new(
            format!("a pattern can only be matched against text, not {}", operand.kind),
            operand.place,
        )
        .hint("write `CAST(x AS VARCHAR)`");
        adapted(operand, &SqlType::Varchar).ok_or(wrong)?
    };
    let [subject, pattern] = operands;
    let (subject, pattern) = (text(subject)?, text(pattern)?);
    let prepared = |pattern: &str| {
        let pattern = if case == PatternCase::Ignored { lower(pattern) } else { pattern.to_owned() };
        parse(&pattern, escape)
    };
    let cased = move |text: &str| if case == PatternCase::Ignored { lower(text) } else { text.to_owned() };
    let known = pattern.known_value().and_then(Datum::as_text).map(prepared);
    let typed = match known {
        Some(parts) => {
            let parts = parts.map_err(|message| Refusal::new(message, pattern.place))?;
            let matched = move |arguments: crate::expression::typed::Arguments<'_, '_>| {
                Ok(Datum::Boolean(matches(&letters(&cased(word(arguments, 0))), &parts)))
            };
            Typed::call(matched, vec![subject], SqlType::Boolean, place)
        }
        None => {
            let matched = move |arguments: crate::expression::typed::Arguments<'_, '_>| {
                let parts = parse(&cased(word(arguments, 1)), escape)?;
                Ok(Datum::Boolean(matches(&letters(&cased(word(arguments, 0))), &parts)))
            };
            Typed::call(matched, vec![subject, pattern], SqlType::Boolean, place)
        }
    };
    folded(typed)
}

fn letters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn parse(pattern: &str, escape: Option<char>) -> Result<Vec<PatternPart>, String> {
    let mut parts = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            _ if Some(letter) == escape => {
                PatternPart::Letter(letters.next().ok_or("the pattern ends after its escape character")?)
            }
            '%' => PatternPart::AnyText,
            '_' => PatternPart::AnyLetter,
            _ => PatternPart::Letter(letter),
        });
    }
    Ok(parts)
}

/// Matches with backtracking only to the last `%`.
fn matches(text: &[char], pattern: &[PatternPart]) -> bool {
    let (mut at, mut part) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        let fits = match pattern.get(part) {
            Some(PatternPart::Letter(letter)) => text.get(at) == Some(letter),
            Some(PatternPart::AnyLetter) => true,
            Some(PatternPart::AnyText) => {
                retry = Some((part + 1, at));
                part += 1;
                continue;
            }
            None => false,
        };
        if fits {
            at += 1;
            part += 1;
        } else if let Some((behind, from)) = retry {
            part = behind;
            at = from + 1;
            retry = Some((behind, at));
        } else {
            return false;
        }
    }
    pattern.get(part..).unwrap_or_default().iter().all(|part| *part == PatternPart::AnyText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (text, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "a_c", true),
            ("abc", "ab", false),
            ("", "%", true),
            ("", "_", false),
            ("aXbXc", "%X%c", true),
            ("aaa", "%a%a%a%a", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("é", "_", true),
        ] {
            let parts = parse(pattern, Some('\\')).unwrap();
            assert_eq!(matches(&letters(text), &parts), expected, "{text} LIKE {pattern}");
        }
        assert!(parse("a\\", Some('\\')).is_err());
    }
}
