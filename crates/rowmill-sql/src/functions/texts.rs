//! Functions on text.

use rusqlite::functions::Context;
use rusqlite::{Connection, Error, Result};

use super::{scalar, text, whole};

/// The longest text that a function may make, in characters.
const LONGEST: i64 = 100_000_000;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, &["contains"], 2, |context| test(context, |text, part| text.contains(part)))?;
    scalar(connection, &["starts_with", "prefix"], 2, |context| {
        test(context, |text, part| text.starts_with(part))
    })?;
    scalar(connection, &["ends_with", "suffix"], 2, |context| {
        test(context, |text, part| text.ends_with(part))
    })?;
    scalar(connection, &["strpos"], 2, |context| {
        let (Some(text), Some(part)) = (text(context, 0), text(context, 1)) else { return Ok(None) };
        let before = text.find(&*part).and_then(|found| text.get(..found));
        Ok(Some(before.map_or(0, |before| before.chars().count() as i64 + 1)))
    })?;
    scalar(connection, &["left"], 2, |context| {
        Ok(cut(context, |length, count| (0, if count < 0 { length + count } else { count })))
    })?;
    scalar(connection, &["right"], 2, |context| {
        Ok(cut(context, |length, count| (if count < 0 { -count } else { length - count }, length)))
    })?;
    scalar(connection, &["split_part"], 3, split_part)?;
    scalar(connection, &["lpad"], 3, |context| pad(context, |text, padding| format!("{padding}{text}")))?;
    scalar(connection, &["rpad"], 3, |context| pad(context, |text, padding| format!("{text}{padding}")))?;
    scalar(connection, &["reverse"], 1, |context| {
        Ok(text(context, 0).map(|text| text.chars().rev().collect::<String>()))
    })?;
    scalar(connection, &["repeat"], 2, |context| {
        let (Some(text), Some(count)) = (text(context, 0), whole(context, 1)) else { return Ok(None) };
        bounded((text.len() as i64).saturating_mul(count.max(0)))?;
        Ok(Some(text.repeat(usize::try_from(count).unwrap_or(0))))
    })
}

fn test(context: &Context<'_>, holds: fn(&str, &str) -> bool) -> Result<Option<bool>> {
    Ok(text(context, 0).zip(text(context, 1)).map(|(text, part)| holds(&text, &part)))
}

/// Characters from one place to another, both of which follow from length and count.
fn cut(context: &Context<'_>, range: fn(i64, i64) -> (i64, i64)) -> Option<String> {
    let (text, count) = text(context, 0).zip(whole(context, 1))?;
    let (from, to) = range(text.chars().count() as i64, count);
    let from = usize::try_from(from).unwrap_or(0);
    let to = usize::try_from(to).unwrap_or(0);
    Some(text.chars().take(to).skip(from).collect())
}

/// A part counted from 1, or from the end where the count is negative.
fn split_part(context: &Context<'_>) -> Result<Option<String>> {
    let (Some(text), Some(separator), Some(count)) = (text(context, 0), text(context, 1), whole(context, 2))
    else {
        return Ok(None);
    };
    let parts: Vec<&str> =
        if separator.is_empty() { vec![&*text] } else { text.split(&*separator).collect() };
    let at = if count < 0 { parts.len() as i64 + count } else { (count - 1).max(0) };
    Ok(Some(usize::try_from(at).ok().and_then(|at| parts.get(at)).copied().unwrap_or_default().to_owned()))
}

fn pad(context: &Context<'_>, join: fn(&str, &str) -> String) -> Result<Option<String>> {
    let (Some(text), Some(length), Some(with)) = (text(context, 0), whole(context, 1), text(context, 2))
    else {
        return Ok(None);
    };
    bounded(length)?;
    let length = usize::try_from(length).unwrap_or(0);
    let has = text.chars().count();
    if has >= length {
        return Ok(Some(text.chars().take(length).collect()));
    }
    let padding: String = with.chars().cycle().take(if with.is_empty() { 0 } else { length - has }).collect();
    Ok(Some(join(&text, &padding)))
}

fn bounded(length: i64) -> Result<()> {
    if length > LONGEST {
        return Err(Error::UserFunctionError("string or blob too big".into()));
    }
    Ok(())
}
