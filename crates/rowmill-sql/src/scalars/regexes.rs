//! Regular expressions with RE2's semantics: `\w`, `\d`, `\s` and `\b` are ASCII-only.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::catalog::{BoundFunction, FunctionCall};
use super::texts::{boolean_result, text_argument};
use crate::expression::coerce::{adapt_argument, fold_constant};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction { names: &["regexp_matches"], bind: |call| test(call, |regex, text| regex.is_match(text)) },
    BoundFunction { names: &["regexp_full_match"], bind: full_match },
    BoundFunction { names: &["regexp_extract"], bind: extract },
    BoundFunction { names: &["regexp_extract_all"], bind: extract_all },
    BoundFunction { names: &["regexp_replace"], bind: replace },
];

/// Options of a regular expression.
#[derive(Debug, Clone, Copy, Default)]
struct RegexOptions {
    ignores_case: bool,
    dot_is_newline: bool,
    has_lines: bool,
    replaces_all: bool,
}

impl RegexOptions {
    fn parse(call: &FunctionCall, at: usize) -> BindResult<Self> {
        let mut options = Self::default();
        if call.arguments.len() <= at {
            return Ok(options);
        }
        for letter in call.known_text(at)?.chars() {
            match letter {
                'i' => options.ignores_case = true,
                'c' => options.ignores_case = false,
                's' => options.dot_is_newline = true,
                'm' | 'n' | 'p' => options.has_lines = true,
                'g' if call.name == "regexp_replace" => options.replaces_all = true,
                _ => {
                    let message = format!("`{letter}` is not an option of `{}`", call.name);
                    return Err(QueryRefusal::new(message, call.place)
                        .hint("options are `i`, `s`, `m`, and `g` to replace all"));
                }
            }
        }
        if options.has_lines {
            return Err(QueryRefusal::new("multi-line patterns are not supported", call.place)
                .hint("write `(?m)` at the start of the pattern"));
        }
        Ok(options)
    }
}

/// The regular expression of a call, which must be known before rows are read.
fn known_regex(call: &FunctionCall, at: usize, options: RegexOptions) -> BindResult<Arc<Regex>> {
    let pattern = call.known_text(at)?;
    let place = call.arguments.get(at).map_or(call.place, |argument| argument.place);
    compiled(pattern, options).map(Arc::new).map_err(|message| QueryRefusal::new(message, place))
}

fn compiled(pattern: &str, options: RegexOptions) -> Result<Regex, String> {
    let translated =
        ascii_classes(pattern).ok_or("the pattern uses features that differ between libraries")?;
    RegexBuilder::new(&translated)
        .case_insensitive(options.ignores_case)
        .dot_matches_new_line(options.dot_is_newline)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("invalid pattern: {last}")
        })
}

/// The pattern with ASCII classes, as in RE2; `None` for syntax that RE2 interprets differently.
fn ascii_classes(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let next = letters.next()?;
                match next {
                    'd' if in_class => out.push_str("0-9"),
                    'w' if in_class => out.push_str("0-9A-Za-z_"),
                    's' if in_class => out.push_str("\\t\\n\\f\\r "),
                    'd' => out.push_str("[0-9]"),
                    'w' => out.push_str("[0-9A-Za-z_]"),
                    's' => out.push_str("[\\t\\n\\f\\r ]"),
                    'D' => out.push_str("[^0-9]"),
                    'W' => out.push_str("[^0-9A-Za-z_]"),
                    'S' => out.push_str("[^\\t\\n\\f\\r ]"),
                    'b' | 'B' if !in_class => out.push_str(&format!("(?-u:\\{next})")),
                    'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'A' | 'z' | 'p' | 'P' | 'x' => {
                        out.push('\\');
                        out.push(next);
                    }
                    _ if next.is_ascii_alphanumeric() => return None,
                    _ => {
                        out.push('\\');
                        out.push(next);
                    }
                }
                continue;
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if letters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if letters.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
                continue;
            }
            '[' if letters.peek() == Some(&':') => out.push('['),
            '[' => out.push_str("\\["),
            ']' if in_class => {
                let inside = out.rfind("[:").and_then(|at| out.get(at + 2..));
                in_class = out.ends_with(':') && inside.is_some_and(|inside| !inside.contains(']'));
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(letter);
            }
            '-' if in_class && letters.peek() == Some(&'-') => return None,
            _ => out.push(letter),
        }
    }
    Some(out)
}

fn subject(call: &FunctionCall) -> BindResult<TypedExpression> {
    let found = call.arguments.first().cloned().ok_or_else(|| call.wrong_count("2 or 3"))?;
    adapt_argument(found, &SqlType::Varchar).ok_or_else(|| call.wrong_types("write `CAST(x AS VARCHAR)`"))?
}

fn test(call: &FunctionCall, holds: fn(&Regex, &str) -> bool) -> BindResult<TypedExpression> {
    if !(2..=3).contains(&call.arguments.len()) {
        return Err(call.wrong_count("2 or 3"));
    }
    let regex = known_regex(call, 1, RegexOptions::parse(call, 2)?)?;
    let matched = move |arguments: EvaluatedArguments<'_, '_>| {
        boolean_result(holds(&regex, text_argument(arguments, 0)))
    };
    Ok(TypedExpression::call(matched, vec![subject(call)?], SqlType::Boolean, call.place))
}

fn full_match(call: &FunctionCall) -> BindResult<TypedExpression> {
    if !(2..=3).contains(&call.arguments.len()) {
        return Err(call.wrong_count("2 or 3"));
    }
    let options = RegexOptions::parse(call, 2)?;
    let pattern = call.known_text(1)?.to_owned();
    whole_match(subject(call)?, &pattern, options, call.place)
}

/// `text SIMILAR TO pattern`: the pattern must match the whole text.
pub(crate) fn bind_full_match(
    subject: TypedExpression,
    pattern: &TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let known = pattern.known_value().and_then(Datum::as_text).ok_or_else(|| {
        QueryRefusal::new("a regular expression must be a string in the query", pattern.place)
    })?;
    let wrong = QueryRefusal::new(
        format!("a pattern can only be matched against text, not {}", subject.kind),
        subject.place,
    );
    let subject = adapt_argument(subject, &SqlType::Varchar).ok_or(wrong)??;
    whole_match(subject, known, RegexOptions::default(), place)
}

fn whole_match(
    subject: TypedExpression,
    pattern: &str,
    options: RegexOptions,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    // Anchored, so that the longest alternative is found and not the first.
    let wrapped = format!("\\A(?:{pattern})\\z");
    compiled(pattern, options).map_err(|message| QueryRefusal::new(message, place))?;
    let regex = compiled(&wrapped, options).map_err(|message| QueryRefusal::new(message, place))?;
    let matched = move |arguments: EvaluatedArguments<'_, '_>| {
        boolean_result(regex.is_match(text_argument(arguments, 0)))
    };
    fold_constant(TypedExpression::call(matched, vec![subject], SqlType::Boolean, place))
}

/// The number of the group that a call requests; `None` if the pattern has no such group.
fn group(call: &FunctionCall, regex: &Regex) -> BindResult<Option<usize>> {
    let Some(argument) = call.arguments.get(2) else { return Ok(Some(0)) };
    let found = argument.known_value().and_then(Datum::as_whole);
    let at = found.ok_or_else(|| {
        QueryRefusal::new("the group of a pattern must be a number in the query", argument.place)
    })?;
    Ok(usize::try_from(at).ok().filter(|at| *at < regex.captures_len()))
}

fn captured(regex: &Regex, text: &str, group: Option<usize>) -> String {
    let found = group.and_then(|group| regex.captures(text)?.get(group));
    found.map(|found| found.as_str().to_owned()).unwrap_or_default()
}

fn extract(call: &FunctionCall) -> BindResult<TypedExpression> {
    if !(2..=4).contains(&call.arguments.len()) {
        return Err(call.wrong_count("2 to 4"));
    }
    let regex = known_regex(call, 1, RegexOptions::parse(call, 3)?)?;
    let group = group(call, &regex)?;
    let found = move |arguments: EvaluatedArguments<'_, '_>| {
        Ok(Datum::Text(captured(&regex, text_argument(arguments, 0), group)))
    };
    Ok(TypedExpression::call(found, vec![subject(call)?], SqlType::Varchar, call.place))
}

fn extract_all(call: &FunctionCall) -> BindResult<TypedExpression> {
    let regex = known_regex(call, 1, RegexOptions::default())?;
    let [_, _] = call.exact_arguments()?;
    let found = move |arguments: EvaluatedArguments<'_, '_>| {
        let found =
            regex.find_iter(text_argument(arguments, 0)).map(|found| Datum::Text(found.as_str().to_owned()));
        Ok(Datum::List(found.collect()))
    };
    let kind = SqlType::List(Box::new(SqlType::Varchar));
    Ok(TypedExpression::call(found, vec![subject(call)?], kind, call.place))
}

fn replace(call: &FunctionCall) -> BindResult<TypedExpression> {
    if !(3..=4).contains(&call.arguments.len()) {
        return Err(call.wrong_count("3 or 4"));
    }
    let options = RegexOptions::parse(call, 3)?;
    let regex = known_regex(call, 1, options)?;
    let replacement = translated_replacement(call.known_text(2)?, regex.captures_len())
        .map_err(|message| QueryRefusal::new(message, call.place))?;
    let limit = usize::from(!options.replaces_all);
    let replaced = move |arguments: EvaluatedArguments<'_, '_>| {
        let text = regex.replacen(text_argument(arguments, 0), limit, replacement.as_str());
        Ok(Datum::Text(text.into_owned()))
    };
    Ok(TypedExpression::call(replaced, vec![subject(call)?], SqlType::Varchar, call.place))
}

/// Translates `\1` to `${1}`.
fn translated_replacement(text: &str, groups: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    let at = usize::try_from(u32::from(digit) - u32::from('0')).unwrap_or(0);
                    if at >= groups {
                        return Err(format!("the pattern has no group {at}"));
                    }
                    out.push_str(&format!("${{{digit}}}"));
                }
                Some('\\') => out.push('\\'),
                _ => return Err("`\\` must be followed by the number of a group".to_owned()),
            },
            ('$', _) => out.push_str("$$"),
            (other, _) => out.push(other),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_ascii() {
        let matches =
            |pattern: &str, text: &str| compiled(pattern, RegexOptions::default()).unwrap().is_match(text);
        assert!(!matches("\\w", "é"));
        assert!(matches("[\\w]", "a"));
        assert!(matches("^.$", "é"));
        assert!(matches("[[:alpha:]]x", "ax"));
        assert!(matches("[]a]", "]"));
        assert!(matches("[a&&b]", "&"));
        assert!(matches("\\bb", "éb"));
        assert!(compiled("\\u0041", RegexOptions::default()).is_err());
        assert!(compiled("(", RegexOptions::default()).is_err());
    }
}
