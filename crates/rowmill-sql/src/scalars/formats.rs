//! Formatting and parsing of dates and times: `strftime` and `strptime`.

use super::catalog::{BoundFunction, FunctionCall};
use super::moments::{month_name, weekday_name};
use super::texts::word;
use crate::expression::coerce::{adapted, cast_to};
use crate::expression::refusal::{Bound, Refusal};
use crate::expression::typed::{Arguments, Typed};
use crate::values::calendar::{
    CivilDay, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, midnight, split, weekday,
};
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType;

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction { names: &["strftime"], bind: strftime },
    BoundFunction { names: &["strptime"], bind: |call| strptime(call, CastMode::Fail) },
    BoundFunction { names: &["try_strptime"], bind: |call| strptime(call, CastMode::GiveNull) },
];

/// A piece of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FormPiece {
    Text(String),
    /// A part, given by its letter, with or without leading zeros.
    Part(char, Zeros),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zeros {
    Kept,
    Dropped,
}

/// The letters that can be formatted, and those of them that can be parsed.
const WRITTEN: &str = "aAwdbBmyYHIpMSgfj%";
const READ: &str = "dbBmyYHMSf%";

fn parse(form: &str, known: &str) -> Result<Vec<FormPiece>, String> {
    let mut pieces = Vec::new();
    let mut letters = form.chars();
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let (mut part, mut zeros) = (letters.next(), Zeros::Kept);
        if part == Some('-') {
            (part, zeros) = (letters.next(), Zeros::Dropped);
        }
        match part {
            Some('%') => text.push('%'),
            Some(part) if known.contains(part) => {
                if !text.is_empty() {
                    pieces.push(FormPiece::Text(std::mem::take(&mut text)));
                }
                pieces.push(FormPiece::Part(part, zeros));
            }
            _ => {
                return Err(format!(
                    "`%{}` is not a valid format code here",
                    part.map(String::from).unwrap_or_default()
                ));
            }
        }
    }
    if !text.is_empty() {
        pieces.push(FormPiece::Text(text));
    }
    Ok(pieces)
}

/// `strftime(moment, form)`, in either order.
fn strftime(call: &FunctionCall) -> Bound<Typed> {
    let [first, second] = call.exactly()?;
    let (moment, form_at) = if first.kind.is_moment() { (first, 1) } else { (second, 0) };
    if !moment.kind.is_moment() && moment.kind != SqlType::Null {
        return Err(call.wrong_types("write `strftime(CAST(x AS TIMESTAMP), '%Y-%m-%d')`"));
    }
    let moment = cast_to(moment, &SqlType::Timestamp, CastMode::Fail)?;
    let pieces =
        parse(call.known_text(form_at)?, WRITTEN).map_err(|message| Refusal::new(message, call.place))?;
    let written = move |arguments: Arguments<'_, '_>| {
        let Some(Datum::Timestamp(at)) = arguments.first().map(|datum| &**datum) else {
            return Ok(Datum::Null);
        };
        Ok(Datum::Text(pieces.iter().map(|piece| written_piece(piece, *at)).collect()))
    };
    Ok(Typed::call(written, vec![moment], SqlType::Varchar, call.place))
}

fn written_piece(piece: &FormPiece, timestamp: i64) -> String {
    let FormPiece::Part(letter, zeros) = piece else {
        let FormPiece::Text(text) = piece else { return String::new() };
        return text.clone();
    };
    let (days, clock) = split(timestamp);
    let day = CivilDay::of_days(days);
    let hour = clock / MICROS_PER_HOUR;
    let number = |number: i64, width: usize| match zeros {
        Zeros::Kept => format!("{number:0width$}"),
        Zeros::Dropped => number.to_string(),
    };
    match letter {
        'a' => weekday_name(days).chars().take(3).collect(),
        'A' => weekday_name(days).to_owned(),
        'w' => weekday(days).to_string(),
        'd' => number(day.day, 2),
        'b' => month_name(day.month).chars().take(3).collect(),
        'B' => month_name(day.month).to_owned(),
        'm' => number(day.month, 2),
        'y' => number(day.year.rem_euclid(100), 2),
        'Y' => format!("{:04}", day.year),
        'H' => number(hour, 2),
        'I' => number((hour + 11) % 12 + 1, 2),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        'M' => number(clock / MICROS_PER_MINUTE % 60, 2),
        'S' => number(clock / MICROS_PER_SECOND % 60, 2),
        'g' => format!("{:03}", clock % MICROS_PER_SECOND / 1000),
        'f' => format!("{:06}", clock % MICROS_PER_SECOND),
        _ => number(day.day_of_year(), 3),
    }
}

/// `strptime(text, form)`.
fn strptime(call: &FunctionCall, mode: CastMode) -> Bound<Typed> {
    let [text, _] = call.exactly()?;
    let text = adapted(text, &SqlType::Varchar).ok_or_else(|| call.wrong_types("it reads text"))??;
    let form = call.known_text(1)?.to_owned();
    let pieces = parse(&form, READ).map_err(|message| Refusal::new(message, call.place))?;
    let read = move |arguments: Arguments<'_, '_>| match (read_pieces(word(arguments, 0), &pieces), mode) {
        (Some(timestamp), _) => Ok(Datum::Timestamp(timestamp)),
        (None, CastMode::GiveNull) => Ok(Datum::Null),
        (None, CastMode::Fail) => Err(format!("'{}' does not match the format '{form}'", word(arguments, 0))),
    };
    Ok(Typed::call(read, vec![text], SqlType::Timestamp, call.place))
}

fn read_pieces(text: &str, pieces: &[FormPiece]) -> Option<i64> {
    let mut rest = text;
    let (mut year, mut month, mut day, mut clock) = (1900, 1, 1, 0);
    for piece in pieces {
        let (letter, digits) = match piece {
            FormPiece::Text(text) => {
                rest = rest.strip_prefix(text.as_str())?;
                continue;
            }
            FormPiece::Part('b' | 'B', _) => {
                let found = (1..=12).find(|month| starts_with_name(rest, piece, *month))?;
                let full = month_name(found);
                let length = if *piece == FormPiece::Part('B', Zeros::Kept) { full.len() } else { 3 };
                (month, rest) = (found, rest.get(length..)?);
                continue;
            }
            FormPiece::Part('Y', _) => ('Y', 4),
            FormPiece::Part('f', _) => ('f', 6),
            FormPiece::Part(letter, _) => (*letter, 2),
        };
        let length = rest.bytes().take_while(u8::is_ascii_digit).count().min(digits);
        let (written, behind) = rest.split_at_checked(length)?;
        let number: i64 = written.parse().ok()?;
        rest = behind;
        match letter {
            'Y' => year = number,
            'y' => year = if number < 69 { 2000 + number } else { 1900 + number },
            'm' => month = number,
            'd' => day = number,
            'H' if number < 24 => clock += number * MICROS_PER_HOUR,
            'M' if number < 60 => clock += number * MICROS_PER_MINUTE,
            'S' if number < 60 => clock += number * MICROS_PER_SECOND,
            'f' => clock += format!("{written:0<6}").parse::<i64>().ok()?,
            _ => return None,
        }
    }
    let day = CivilDay::new(year, month, day)?;
    rest.is_empty().then(|| midnight(day.days())?.checked_add(clock))?
}

fn starts_with_name(text: &str, piece: &FormPiece, month: i64) -> bool {
    let full = month_name(month);
    let name = if *piece == FormPiece::Part('B', Zeros::Kept) { full } else { full.get(..3).unwrap_or(full) };
    text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}
