//! Regular expressions.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};

use super::{scalar, text, whole};

pub(super) fn register(connection: &Connection) -> Result<()> {
    // `text REGEXP pattern` calls `regexp(pattern, text)`.
    scalar(connection, &["regexp"], 2, |context| matched(context, 0, 1, |regex, text| regex.is_match(text)))?;
    for arguments in [2, 3] {
        scalar(connection, &["regexp_matches"], arguments, |context| {
            matched(context, 1, 0, |regex, text| regex.is_match(text))
        })?;
        scalar(connection, &["regexp_full_match"], arguments, |context| {
            let whole = |regex: &Regex, text: &str| {
                regex.find_iter(text).any(|found| found.start() == 0 && found.end() == text.len())
            };
            matched(context, 1, 0, whole)
        })?;
    }
    for arguments in [2, 3, 4] {
        scalar(connection, &["regexp_extract"], arguments, extract)?;
    }
    for arguments in [3, 4] {
        scalar(connection, &["regexp_replace"], arguments, replace)?;
    }
    Ok(())
}

fn matched(
    context: &Context<'_>,
    pattern: usize,
    subject: usize,
    holds: fn(&Regex, &str) -> bool,
) -> Result<Option<bool>> {
    let (Some(text), Some(regex)) = (text(context, subject), regex(context, pattern, 2)?) else {
        return Ok(None);
    };
    Ok(Some(holds(&regex, &text)))
}

/// What a group matched, or nothing.
fn extract(context: &Context<'_>) -> Result<Option<String>> {
    let (Some(text), Some(regex)) = (text(context, 0), regex(context, 1, 3)?) else { return Ok(None) };
    let group = if context.len() > 2 { whole(context, 2).unwrap_or(0) } else { 0 };
    let group = usize::try_from(group).unwrap_or(usize::MAX);
    if group >= regex.captures_len() {
        return Err(failed(format!("the pattern `{regex}` has no group {group}")));
    }
    let found = regex.captures(&text).and_then(|captures| captures.get(group));
    Ok(Some(found.map(|found| found.as_str().to_owned()).unwrap_or_default()))
}

/// Replaces the first match, or all with the option `g`.
fn replace(context: &Context<'_>) -> Result<Option<String>> {
    let (Some(text), Some(regex)) = (text(context, 0), regex(context, 1, 3)?) else { return Ok(None) };
    let Some(with) = super::text(context, 2) else { return Ok(None) };
    let all = context.len() > 3 && super::text(context, 3).is_some_and(|options| options.contains('g'));
    let with = replacement(&with);
    Ok(Some(regex.replacen(&text, usize::from(!all), with).into_owned()))
}

/// Groups are written `\1` in SQL and `${1}` in Rust.
fn replacement(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '$' => out.push_str("$$"),
            '\\' => match characters.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    out.push_str("${");
                    out.push(digit);
                    out.push('}');
                }
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

/// The pattern, read once where it is the same for all rows. Options are `i` (upper and lower
/// case are the same), `s` (`.` is any character) and `m` (lines have ends of their own).
fn regex(context: &Context<'_>, at: usize, options: usize) -> Result<Option<Arc<Regex>>> {
    if context.get_raw(at) == ValueRef::Null {
        return Ok(None);
    }
    let options = if options < context.len() { text(context, options) } else { None };
    let options = options.unwrap_or_default().into_owned();
    let regex = context.get_or_create_aux(at as i32, |value| -> Result<Regex> {
        let pattern = value.as_str().map_err(|_| failed("a pattern must be text".to_owned()))?;
        RegexBuilder::new(pattern)
            .case_insensitive(options.contains('i'))
            .dot_matches_new_line(options.contains('s'))
            .multi_line(options.contains('m'))
            .build()
            .map_err(|error| failed(format!("the pattern `{pattern}` cannot be used: {error}")))
    })?;
    Ok(Some(regex))
}

fn failed(what: String) -> Error {
    Error::UserFunctionError(what.into())
}
