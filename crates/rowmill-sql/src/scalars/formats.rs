//! Formatting and parsing of dates and times: `strftime` and `strptime`.

use super::catalog::{BoundFunction, FunctionCall};
use super::date_parts::{month_name, weekday_name};
use super::texts::text_argument;
use crate::expression::coerce::{adapt_argument, cast_to};
use crate::expression::refusal::{BindResult, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::calendar::{
    CivilDay, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, midnight_of, split_timestamp, weekday,
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
enum FormatPiece {
    Text(String),
    /// A part, given by its letter, with or without leading zeros.
    Part(char, LeadingZeros),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeadingZeros {
    Kept,
    Dropped,
}

/// The letters that can be formatted, and those of them that can be parsed.
const WRITTEN: &str = "aAwdbBmyYHIpMSgfj%";
const READ: &str = "dbBmyYHMSf%";

fn parse(form: &str, known: &str) -> Result<Vec<FormatPiece>, String> {
    let mut pieces = Vec::new();
    let mut letters = form.chars();
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let (mut part, mut zeros) = (letters.next(), LeadingZeros::Kept);
        if part == Some('-') {
            (part, zeros) = (letters.next(), LeadingZeros::Dropped);
        }
        match part {
            Some('%') => text.push('%'),
            Some(part) if known.contains(part) => {
                if !text.is_empty() {
                    pieces.push(FormatPiece::Text(std::mem::take(&mut text)));
                }
                pieces.push(FormatPiece::Part(part, zeros));
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
        pieces.push(FormatPiece::Text(text));
    }
    Ok(pieces)
}

/// `strftime(moment, form)`, in either order.
fn strftime(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [first, second] = call.exact_arguments()?;
    let (moment, form_at) = if first.kind.is_date_or_timestamp() { (first, 1) } else { (second, 0) };
    if !moment.kind.is_date_or_timestamp() && moment.kind != SqlType::Null {
        let hint = match moment.kind {
            SqlType::TimestampTz => "write `strftime(x AT TIME ZONE 'UTC', '%Y-%m-%d')`",
            _ => "write `strftime(CAST(x AS TIMESTAMP), '%Y-%m-%d')`",
        };
        return Err(call.wrong_types(hint));
    }
    let moment = cast_to(moment, &SqlType::Timestamp, CastMode::Fail)?;
    let pieces = parse(call.known_text(form_at)?, WRITTEN)
        .map_err(|message| QueryRefusal::new(message, call.place))?;
    let written = move |arguments: EvaluatedArguments<'_, '_>| {
        let Some(Datum::Timestamp(at)) = arguments.first().map(|datum| &**datum) else {
            return Ok(Datum::Null);
        };
        Ok(Datum::Text(pieces.iter().map(|piece| written_piece(piece, *at)).collect()))
    };
    Ok(TypedExpression::call(written, vec![moment], SqlType::Varchar, call.place))
}

fn written_piece(piece: &FormatPiece, timestamp: i64) -> String {
    let FormatPiece::Part(letter, zeros) = piece else {
        let FormatPiece::Text(text) = piece else { return String::new() };
        return text.clone();
    };
    let (days, clock) = split_timestamp(timestamp);
    let day = CivilDay::from_days(days);
    let hour = clock / MICROS_PER_HOUR;
    let number = |number: i64, width: usize| match zeros {
        LeadingZeros::Kept => format!("{number:0width$}"),
        LeadingZeros::Dropped => number.to_string(),
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
fn strptime(call: &FunctionCall, mode: CastMode) -> BindResult<TypedExpression> {
    let [text, _] = call.exact_arguments()?;
    let text = adapt_argument(text, &SqlType::Varchar).ok_or_else(|| call.wrong_types("it reads text"))??;
    let form = call.known_text(1)?.to_owned();
    let pieces = parse(&form, READ).map_err(|message| QueryRefusal::new(message, call.place))?;
    let read = move |arguments: EvaluatedArguments<'_, '_>| match (
        read_pieces(text_argument(arguments, 0), &pieces),
        mode,
    ) {
        (Some(timestamp), _) => Ok(Datum::Timestamp(timestamp)),
        (None, CastMode::GiveNull) => Ok(Datum::Null),
        (None, CastMode::Fail) => {
            Err(format!("'{}' does not match the format '{form}'", text_argument(arguments, 0)))
        }
    };
    Ok(TypedExpression::call(read, vec![text], SqlType::Timestamp, call.place))
}

fn read_pieces(text: &str, pieces: &[FormatPiece]) -> Option<i64> {
    let mut rest = text;
    let (mut year, mut month, mut day, mut clock) = (1900, 1, 1, 0);
    for piece in pieces {
        let (letter, digits) = match piece {
            FormatPiece::Text(text) => {
                rest = rest.strip_prefix(text.as_str())?;
                continue;
            }
            FormatPiece::Part('b' | 'B', _) => {
                let found = (1..=12).find(|month| starts_with_name(rest, piece, *month))?;
                let full = month_name(found);
                let length =
                    if *piece == FormatPiece::Part('B', LeadingZeros::Kept) { full.len() } else { 3 };
                (month, rest) = (found, rest.get(length..)?);
                continue;
            }
            FormatPiece::Part('Y', _) => ('Y', 4),
            FormatPiece::Part('f', _) => ('f', 6),
            FormatPiece::Part(letter, _) => (*letter, 2),
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
    rest.is_empty().then(|| midnight_of(day.days())?.checked_add(clock))?
}

fn starts_with_name(text: &str, piece: &FormatPiece, month: i64) -> bool {
    let full = month_name(month);
    let name = if *piece == FormatPiece::Part('B', LeadingZeros::Kept) {
        full
    } else {
        full.get(..3).unwrap_or(full)
    };
    text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}
