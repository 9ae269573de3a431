//! `LIKE` and `ILIKE`.

use super::texts::{lower_case, text_argument};
use crate::expression::coerce::{adapt_argument, fold_constant};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::TypedExpression;
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
enum LikePart {
    Letter(char),
    AnyLetter,
    AnyText,
}

/// `text LIKE pattern`, with the character that escapes `%` and `_`.
pub(crate) fn bind_like(
    operands: [TypedExpression; 2],
    case: PatternCase,
    escape: Option<char>,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let text = |operand: TypedExpression| {
        let wrong = QueryRefusal::new(
            format!("a pattern can only be matched against text, not {}", operand.kind),
            operand.place,
        )
        .hint("write `CAST(x AS VARCHAR)`");
        adapt_argument(operand, &SqlType::Varchar).ok_or(wrong)?
    };
    let [subject, pattern] = operands;
    let (subject, pattern) = (text(subject)?, text(pattern)?);
    let prepared = |pattern: &str| {
        let pattern = if case == PatternCase::Ignored { lower_case(pattern) } else { pattern.to_owned() };
        parse(&pattern, escape)
    };
    let cased =
        move |text: &str| if case == PatternCase::Ignored { lower_case(text) } else { text.to_owned() };
    let known = pattern.known_value().and_then(Datum::as_text).map(prepared);
    let typed = match known {
        Some(parts) => {
            let parts = parts.map_err(|message| QueryRefusal::new(message, pattern.place))?;
            let matched = move |arguments: crate::expression::typed::EvaluatedArguments<'_, '_>| {
                Ok(Datum::Boolean(matches(&letters(&cased(text_argument(arguments, 0))), &parts)))
            };
            TypedExpression::call(matched, vec![subject], SqlType::Boolean, place)
        }
        None => {
            let matched = move |arguments: crate::expression::typed::EvaluatedArguments<'_, '_>| {
                let parts = parse(&cased(text_argument(arguments, 1)), escape)?;
                Ok(Datum::Boolean(matches(&letters(&cased(text_argument(arguments, 0))), &parts)))
            };
            TypedExpression::call(matched, vec![subject, pattern], SqlType::Boolean, place)
        }
    };
    fold_constant(typed)
}

fn letters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn parse(pattern: &str, escape: Option<char>) -> Result<Vec<LikePart>, String> {
    let mut parts = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            _ if Some(letter) == escape => {
                LikePart::Letter(letters.next().ok_or("the pattern ends after its escape character")?)
            }
            '%' => LikePart::AnyText,
            '_' => LikePart::AnyLetter,
            _ => LikePart::Letter(letter),
        });
    }
    Ok(parts)
}

/// Matches with backtracking only to the last `%`.
fn matches(text: &[char], pattern: &[LikePart]) -> bool {
    let (mut at, mut part) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        let fits = match pattern.get(part) {
            Some(LikePart::Letter(letter)) => text.get(at) == Some(letter),
            Some(LikePart::AnyLetter) => true,
            Some(LikePart::AnyText) => {
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
    pattern.get(part..).unwrap_or_default().iter().all(|part| *part == LikePart::AnyText)
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
