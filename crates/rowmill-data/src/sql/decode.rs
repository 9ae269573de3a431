//! From the JSON text of a field to a value of SQL.

use std::borrow::Cow;

use rowmill_core::json_text::decode_string;
use rowmill_sql::{Kind, Value};

/// What text can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// Text is text: the format knows numbers.
    IsText,
    /// Text may be a number, a truth, or nothing: the format knows only text.
    MayBeNumber,
}

/// The value of a field in a column of a kind.
///
/// It is what SQLite would make of it in a table with that column, so that a query gives the
/// same whether its input is copied or not.
pub(crate) fn value(json: &str, kind: Kind, text: Text) -> Value<'_> {
    match json.as_bytes().first() {
        None | Some(b'n') => Value::Null,
        Some(b'"') => {
            let decoded = decode_string(json).unwrap_or_default();
            match (text, &*decoded, kind) {
                (Text::MayBeNumber, "", _) => Value::Null,
                (Text::MayBeNumber, "true", Kind::Boolean) => Value::Integer(1),
                (Text::MayBeNumber, "false", Kind::Boolean) => Value::Integer(0),
                (_, number, _) if kind.is_number() && is_number(number) => number_of_text(decoded, kind),
                _ => Value::Text(decoded),
            }
        }
        Some(b't' | b'f') if kind != Kind::Text => Value::Integer(i64::from(json == "true")),
        Some(b't' | b'f' | b'[' | b'{') => Value::Text(Cow::Borrowed(json)),
        Some(_) => number_of_text(Cow::Borrowed(json), kind),
    }
}

/// A number. One that SQLite cannot hold stays text, so that none of its digits is lost.
fn number_of_text(text: Cow<'_, str>, kind: Kind) -> Value<'_> {
    let wants_real = match kind {
        Kind::Text | Kind::Nested => return Value::Text(text),
        Kind::Decimal(..) if !kind.is_number() => return Value::Text(text),
        Kind::Real | Kind::Decimal(..) => true,
        Kind::Integer | Kind::Wide | Kind::Boolean | Kind::Mixed => !is_whole(&text),
    };
    if wants_real {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Real(number),
            _ => Value::Text(text),
        }
    } else {
        match text.parse() {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Text(text),
        }
    }
}

/// Whether a number in JSON is written as a whole one.
pub(crate) fn is_whole(number: &str) -> bool {
    !number.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) && number != "-0"
}

/// Whether text is a number as JSON writes it: no zeros in front, no plus, no blanks.
pub(crate) fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    let mut rest = rest.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        rest = fraction.get(count..).unwrap_or_default();
        if count == 0 {
            return false;
        }
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        return digits(exponent) > 0 && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_what_only_looks_like_them() {
        for (text, expected) in [
            ("0", true),
            ("-12", true),
            ("1.50", true),
            ("1e5", true),
            ("1.5E-3", true),
            ("", false),
            ("-", false),
            ("01", false),
            ("+1", false),
            (" 1", false),
            ("1.", false),
            (".5", false),
            ("1e", false),
            ("1x", false),
            ("0x10", false),
            ("NaN", false),
        ] {
            assert_eq!(is_number(text), expected, "{text}");
        }
    }

    #[test]
    fn values_fit_the_kind_of_their_column_or_stay_what_they_are() {
        let text = |text: &'static str| Value::Text(text.into());
        for (json, kind, expected) in [
            ("1", Kind::Integer, Value::Integer(1)),
            ("1", Kind::Real, Value::Real(1.0)),
            ("1", Kind::Text, text("1")),
            ("1.5", Kind::Integer, Value::Real(1.5)),
            ("18446744073709551615", Kind::Wide, text("18446744073709551615")),
            ("1e999", Kind::Real, text("1e999")),
            ("true", Kind::Boolean, Value::Integer(1)),
            ("false", Kind::Mixed, Value::Integer(0)),
            ("true", Kind::Text, text("true")),
            ("null", Kind::Text, Value::Null),
            (r#""12.50""#, Kind::Decimal(10, 2), Value::Real(12.5)),
            (r#""12.50""#, Kind::Decimal(38, 2), text("12.50")),
            (r#""a\nb""#, Kind::Text, text("a\nb")),
            (r#""""#, Kind::Text, text("")),
            (r#"{"a": 1}"#, Kind::Nested, text(r#"{"a": 1}"#)),
        ] {
            assert_eq!(value(json, kind, Text::IsText), expected, "{json} {kind:?}");
        }
    }

    #[test]
    fn text_of_untyped_formats_is_read_as_what_its_column_is() {
        for (json, kind, expected) in [
            (r#""""#, Kind::Text, Value::Null),
            (r#""7""#, Kind::Integer, Value::Integer(7)),
            (r#""7""#, Kind::Real, Value::Real(7.0)),
            (r#""n/a""#, Kind::Integer, Value::Text("n/a".into())),
            (r#""true""#, Kind::Boolean, Value::Integer(1)),
            (r#""true""#, Kind::Text, Value::Text("true".into())),
            (r#""7""#, Kind::Text, Value::Text("7".into())),
        ] {
            assert_eq!(value(json, kind, Text::MayBeNumber), expected, "{json} {kind:?}");
        }
    }
}
