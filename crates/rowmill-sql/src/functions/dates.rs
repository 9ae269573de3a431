//! Functions on dates and times. What is no date gives null, as with SQLite's own.

use rusqlite::functions::Context;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result};

use super::moments::{Moment, Part};
use super::{flags, scalar, text};

pub(super) fn register(connection: &Connection) -> Result<()> {
    let parts: [(&str, Part); 13] = [
        ("year", Part::Year),
        ("quarter", Part::Quarter),
        ("month", Part::Month),
        ("week", Part::Week),
        ("weekofyear", Part::Week),
        ("day", Part::Day),
        ("dayofmonth", Part::Day),
        ("dayofyear", Part::DayOfYear),
        ("dayofweek", Part::DayOfWeek),
        ("isodow", Part::IsoDay),
        ("hour", Part::Hour),
        ("minute", Part::Minute),
        ("second", Part::Second),
    ];
    for (name, part) in parts {
        connection.create_scalar_function(name, 1, flags(), move |context: &Context<'_>| {
            Ok(part_of(Moment::of(context.get_raw(0)), part))
        })?;
    }
    scalar(connection, &["epoch"], 1, |context| Ok(part_of(Moment::of(context.get_raw(0)), Part::Epoch)))?;
    scalar(connection, &["dayname"], 1, |context| Ok(formatted(context, "%A")))?;
    scalar(connection, &["monthname"], 1, |context| Ok(formatted(context, "%B")))?;
    scalar(connection, &["date_part", "datepart"], 2, |context| {
        Ok(match named_part(context)? {
            Some(part) => part_of(Moment::of(context.get_raw(1)), part),
            None => Value::Null,
        })
    })?;
    scalar(connection, &["date_trunc", "datetrunc"], 2, |context| {
        let Some(part) = named_part(context)? else { return Ok(None) };
        Ok(Moment::of(context.get_raw(1)).and_then(|moment| moment.truncated(part)).map(Moment::text))
    })?;
    scalar(connection, &["date_diff", "datediff"], 3, |context| {
        let Some(part) = named_part(context)? else { return Ok(None) };
        let both = Moment::of(context.get_raw(1)).zip(Moment::of(context.get_raw(2)));
        Ok(both.and_then(|(from, to)| from.until(to, part)))
    })?;
    scalar(connection, &["strftime"], 2, strftime)
}

fn part_of(moment: Option<Moment>, part: Part) -> Value {
    match moment.and_then(|moment| moment.part(part)) {
        None => Value::Null,
        Some(number) if part == Part::Epoch => Value::Real(number),
        Some(number) => Value::Integer(number as i64),
    }
}

fn named_part(context: &Context<'_>) -> Result<Option<Part>> {
    let Some(name) = text(context, 0) else { return Ok(None) };
    let unknown =
        || format!("`{name}` is no part of a date; write `year`, `month`, `week`, `day`, `hour`, …");
    Part::parse(&name).map(Some).ok_or_else(|| Error::UserFunctionError(unknown().into()))
}

fn formatted(context: &Context<'_>, form: &str) -> Option<String> {
    Moment::of(context.get_raw(0)).map(|moment| moment.at.strftime(form).to_string())
}

/// Takes its two arguments in both orders that are in use: the form is the one with a `%`.
fn strftime(context: &Context<'_>) -> Result<Option<String>> {
    let is_form = |at: usize| matches!(context.get_raw(at), ValueRef::Text(bytes) if bytes.contains(&b'%'));
    let (form, at, fraction) = if is_form(1) && !is_form(0) { (1, 0, "%6f") } else { (0, 1, "%S.%3f") };
    let (Some(form), Some(moment)) = (text(context, form), Moment::of(context.get_raw(at))) else {
        return Ok(None);
    };
    let seconds = moment.epoch().map(|epoch| (epoch.floor() as i64).to_string()).unwrap_or_default();
    let form = with_directive(&with_directive(&form, 'f', fraction), 's', &seconds);
    Ok(jiff::fmt::strtime::format(form, moment.at).ok())
}

/// Replaces `%` and a letter, but not where the `%` is itself behind one.
fn with_directive(form: &str, letter: char, with: &str) -> String {
    let mut out = String::with_capacity(form.len());
    let mut characters = form.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('%', Some(next)) => {
                characters.next();
                if next == letter {
                    out.push_str(with);
                } else {
                    out.push('%');
                    out.push(next);
                }
            }
            _ => out.push(character),
        }
    }
    out
}
