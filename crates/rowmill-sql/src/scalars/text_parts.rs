//! Functions that cut, split and fill up texts. Positions count characters from 1.

use super::texts::{ComputeResult, MOST_BYTES, TOO_LONG, count_result, number, text, text_argument};
use crate::expression::typed::EvaluatedArguments;

pub(super) fn left(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let found = text_argument(arguments, 0);
    let count = kept_letters(found, number(arguments, 1));
    text(found.chars().take(count).collect::<String>())
}

pub(super) fn right(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let found = text_argument(arguments, 0);
    let count = kept_letters(found, number(arguments, 1));
    text(found.chars().skip(found.chars().count() - count).collect::<String>())
}

/// How many characters `left` and `right` keep; a negative number is how many they remove.
fn kept_letters(text: &str, count: i64) -> usize {
    let length = text.chars().count();
    match usize::try_from(count) {
        Ok(count) => count.min(length),
        Err(_) => length.saturating_sub(usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}

/// Where a text is filled up.
pub(super) enum TextSide {
    Left,
    Right,
}

pub(super) fn pad(arguments: EvaluatedArguments<'_, '_>, side: TextSide) -> ComputeResult {
    let (found, filling) = (text_argument(arguments, 0), text_argument(arguments, 2));
    let wanted = usize::try_from(number(arguments, 1)).unwrap_or(0);
    if wanted > MOST_BYTES {
        return Err(TOO_LONG.to_owned());
    }
    let kept: String = found.chars().take(wanted).collect();
    let missing = wanted - kept.chars().count();
    if missing > 0 && filling.is_empty() {
        return Err("the padding text is empty".to_owned());
    }
    let filled: String = filling.chars().cycle().take(missing).collect();
    text(match side {
        TextSide::Left => filled + &kept,
        TextSide::Right => kept + &filled,
    })
}

/// A part of a text, from a position (counted from the end if negative) and with a length.
pub(super) fn substring(text: &str, from: i64, length: i64) -> String {
    let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    // It may be before the text; the characters cut off there count anyway.
    let start = match from {
        0.. => (from - 1).min(count),
        _ => count.saturating_add(from),
    };
    let end = start.saturating_add(length);
    let (start, end) = if length > 0 { (start, end) } else { (end, start) };
    let (start, end) = (start.clamp(0, count), end.clamp(0, count));
    let place = |number: i64| usize::try_from(number).unwrap_or(0);
    text.chars().skip(place(start)).take(place(end - start)).collect()
}

pub(super) fn position(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let found = text_argument(arguments, 0);
    let at = found.find(text_argument(arguments, 1)).and_then(|at| found.get(..at));
    count_result(at.map_or(0, |before| before.chars().count() + 1))
}

pub(super) fn split_part(arguments: EvaluatedArguments<'_, '_>) -> ComputeResult {
    let parts = split_text(text_argument(arguments, 0), text_argument(arguments, 1));
    let at = number(arguments, 2);
    let count = i64::try_from(parts.len()).unwrap_or(i64::MAX);
    let place = if at < 0 { at.saturating_add(count) } else { at - 1 };
    let found = usize::try_from(place).ok().and_then(|place| parts.get(place));
    text(found.copied().unwrap_or_default())
}

pub(super) fn split_text<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    if separator.is_empty() {
        let ends = text.char_indices().skip(1).map(|(at, _)| at).chain([text.len()]);
        let starts = text.char_indices().map(|(at, _)| at);
        return starts.zip(ends).filter_map(|(start, end)| text.get(start..end)).collect();
    }
    text.split(separator).collect()
}
