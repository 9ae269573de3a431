//! Infers the type of a column from its values.

use rowmill_core::json_text::decode_string;
use rowmill_sql::{SqlType, TextInterpretation, sqlite_value_from_json};
use rowmill_types::Row;
use serde_json::value::RawValue;

use super::text_hints::suggested_expression;

/// Objects with more fields, and values with deeper nesting, become JSON.
const MOST_FIELDS: usize = 200;
const DEEPEST: usize = 12;

/// How much of a text is kept for messages.
const SHOWN: usize = 40;

/// Which kinds of values a column has.
#[derive(Debug, Default)]
pub(crate) struct ColumnTypeInference {
    whole: bool,
    /// Integers that do not fit into 64 bits.
    wide: bool,
    real: bool,
    boolean: bool,
    /// Dates, timestamps, timestamps with an offset from UTC, and other text.
    date: bool,
    timestamp: bool,
    instant: bool,
    text: bool,
    /// The first text that is none of these.
    first_text: Option<String>,
    /// The first text that is a date, time or boolean in another format.
    other_form: Option<String>,
    /// The elements of lists.
    list: Option<Box<Self>>,
    /// The fields of objects.
    object: Option<Vec<(String, Self)>>,
    /// Anything that only the JSON type can hold.
    other: bool,
}

impl ColumnTypeInference {
    /// Adds the JSON of a value.
    pub(crate) fn add(&mut self, json: &str, text: TextInterpretation) {
        self.add_nested(json, text, 0);
    }

    fn add_nested(&mut self, json: &str, text: TextInterpretation, depth: usize) {
        match json.as_bytes().first() {
            Some(b'"') => {
                if let Some(value) = decode_string(json) {
                    self.add_text(&value, text);
                }
            }
            Some(b't' | b'f') => self.boolean = true,
            Some(b'n') | None => {}
            Some(b'[' | b'{') if depth >= DEEPEST => self.other = true,
            Some(b'[') => {
                let seen = self.list.get_or_insert_default();
                let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
                items
                    .iter()
                    .for_each(|item| seen.add_nested(item.get(), TextInterpretation::AlwaysText, depth + 1));
            }
            Some(b'{') => self.add_object(json, depth),
            Some(_) => self.add_number(json),
        }
    }

    fn add_object(&mut self, json: &str, depth: usize) {
        let known = self.object.get_or_insert_default();
        // The fields of an object are those of a row, at any nesting level.
        let Ok(object) = Row::parse(0, json.to_owned()) else { return };
        for (name, value) in object.fields() {
            let place = known.iter().position(|(known, _)| *known == *name).unwrap_or_else(|| {
                known.push((name.to_owned(), Self::default()));
                known.len() - 1
            });
            if let Some((_, seen)) = known.get_mut(place) {
                seen.add_nested(value, TextInterpretation::AlwaysText, depth + 1);
            }
        }
        self.other |= known.len() > MOST_FIELDS;
    }

    fn add_text(&mut self, value: &str, text: TextInterpretation) {
        match (text, value) {
            (TextInterpretation::AnyType, "") => {}
            (TextInterpretation::AnyType, "true" | "false") => self.boolean = true,
            (TextInterpretation::AnyType, number) if is_number(number) => self.add_number(number),
            (_, value) if is_moment(value, SqlType::Date) => self.date = true,
            (_, value) if is_moment(value, SqlType::Timestamp) => self.timestamp = true,
            (_, value) if is_instant(value) => self.instant = true,
            (_, value) => {
                self.text = true;
                self.first_text.get_or_insert_with(|| value.chars().take(SHOWN).collect());
                if self.other_form.is_none() && suggested_expression(value, "").is_some() {
                    self.other_form = Some(value.to_owned());
                }
            }
        }
    }

    fn add_number(&mut self, number: &str) {
        let is_whole = !number.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) && number != "-0";
        match (is_whole, number.parse::<i64>().is_ok(), number.parse::<i128>().is_ok()) {
            (true, true, _) => self.whole = true,
            (true, false, true) => self.wide = true,
            _ => self.real = true,
        }
    }

    /// The type that holds all values.
    pub(crate) fn kind(&self, text: TextInterpretation) -> SqlType {
        let is_number = self.whole || self.wide || self.real;
        let is_text = self.text || self.date || self.timestamp || self.instant;
        let seen = [is_text, is_number, self.boolean, self.list.is_some(), self.object.is_some()];
        let is_untyped = text == TextInterpretation::AnyType;
        match seen.iter().filter(|seen| **seen).count() {
            _ if self.other => SqlType::Json,
            0 if is_untyped => SqlType::Varchar,
            0 => SqlType::Null,
            1 if is_text => self.text_kind(),
            1 if self.real => SqlType::Double,
            1 if self.wide => SqlType::HugeInt,
            1 if self.whole => SqlType::BigInt,
            1 if self.boolean => SqlType::Boolean,
            1 => self.nested_kind(),
            _ if is_untyped => SqlType::Varchar,
            _ => SqlType::Json,
        }
    }

    /// Why a column is text although it may be meant as numbers, and how to read it.
    pub(crate) fn text_note(&self, column: &str) -> Option<String> {
        let name = quoted_name(column);
        let Some(value) = self.first_text.as_deref() else {
            let forms = [self.date, self.timestamp, self.instant];
            let is_mixed = forms.iter().filter(|seen| **seen).count() > 1;
            return is_mixed.then(|| {
                format!(
                    "`{column}` is text because its dates and times have several formats: read them with \
                     `CAST({name} AS TIMESTAMP)`"
                )
            });
        };
        let why = |value: &str| format!("`{column}` is text because of values such as `{value}`");
        if let Some((value, reading)) =
            self.other_form.as_deref().and_then(|value| Some((value, suggested_expression(value, &name)?)))
        {
            return Some(format!("{}: read them with `{reading}`", why(value)));
        }
        let why = why(value);
        if has_decimal_comma(value) {
            let without_dots = if value.contains('.') { format!("replace({name}, '.', '')") } else { name };
            let number = format!("CAST(replace({without_dots}, ',', '.') AS DOUBLE)");
            return Some(format!("{why}: read numbers with a decimal comma with `{number}`"));
        }
        let has_numbers = self.whole || self.wide || self.real;
        has_numbers.then(|| {
            format!("{why}: use `TRY_CAST({name} AS DOUBLE)` for the numbers, and null for other values")
        })
    }

    fn text_kind(&self) -> SqlType {
        match (self.text, self.date, self.timestamp, self.instant) {
            (false, true, false, false) => SqlType::Date,
            (false, false, true, false) => SqlType::Timestamp,
            (false, false, false, true) => SqlType::TimestampTz,
            _ => SqlType::Varchar,
        }
    }

    fn nested_kind(&self) -> SqlType {
        // A list that was always empty, or a field that was always null, may hold anything.
        let inner = |seen: &Self| match seen.kind(TextInterpretation::AlwaysText) {
            SqlType::Null => SqlType::Json,
            kind => kind,
        };
        match (&self.list, &self.object) {
            (Some(items), _) => SqlType::List(Box::new(inner(items))),
            (_, Some(fields)) if !fields.is_empty() && has_different_names(fields) => {
                SqlType::Struct(fields.iter().map(|(name, seen)| (name.clone(), inner(seen))).collect())
            }
            _ => SqlType::Json,
        }
    }
}

/// A name in the form in which a query writes it.
pub(crate) fn quoted_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || letter == '_';
    let starts_well = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    if starts_well && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Whether text is a number with a decimal comma: `1,50`, `-1.234,5`.
fn has_decimal_comma(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((whole, fraction)) = text.strip_prefix('-').unwrap_or(text).split_once(',') else {
        return false;
    };
    let mut groups = whole.split('.');
    digits(fraction)
        && groups.next().is_some_and(digits)
        && groups.all(|group| group.len() == 3 && digits(group))
}

/// Whether names differ by more than case, which SQL ignores.
fn has_different_names(fields: &[(String, ColumnTypeInference)]) -> bool {
    let mut names = std::collections::HashSet::new();
    fields.iter().all(|(name, _)| names.insert(name.to_lowercase()))
}

/// Whether text is a date or timestamp in the only recognized format: `2024-05-01`, `2024-05-01 10:30:00`.
fn is_moment(text: &str, kind: SqlType) -> bool {
    let digits = |range: std::ops::Range<usize>| {
        text.get(range).is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let marks = |places: &[(usize, &[u8])]| {
        places.iter().all(|(at, marks)| text.as_bytes().get(*at).is_some_and(|byte| marks.contains(byte)))
    };
    let is_day = digits(0..4) && digits(5..7) && digits(8..10) && marks(&[(4, b"-"), (7, b"-")]);
    let is_form = match kind {
        SqlType::Date => text.len() == 10,
        _ => {
            let is_clock = digits(11..13) && digits(14..16) && digits(17..19);
            let fraction = text.get(19..).unwrap_or_default();
            let has_fraction = fraction.len() > 1
                && fraction.len() <= 7
                && fraction.starts_with('.')
                && digits(20..text.len());
            is_clock && marks(&[(10, b" T"), (13, b":"), (16, b":")]) && (fraction.is_empty() || has_fraction)
        }
    };
    is_day
        && is_form
        && sqlite_value_from_json(&format!("\"{text}\""), &kind, TextInterpretation::AlwaysText).is_some()
}

/// Whether text is a timestamp with an offset from UTC: `2024-05-01T10:30:00Z`, `2024-05-01
/// 10:30:00.5+02:00`.
fn is_instant(text: &str) -> bool {
    let Some(at) = text.get(19..).and_then(|rest| rest.find(['Z', '+', '-'])) else { return false };
    let (local, zone) = text.split_at(at + 19);
    let digits = zone.strip_prefix(['+', '-']).map(|distance| distance.replacen(':', "", 1));
    let is_distance = digits.is_some_and(|digits| {
        matches!(digits.len(), 2 | 4) && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    (zone == "Z" || is_distance)
        && is_moment(local, SqlType::Timestamp)
        && sqlite_value_from_json(
            &format!("\"{text}\""),
            &SqlType::TimestampTz,
            TextInterpretation::AlwaysText,
        )
        .is_some()
}

/// Whether text is a number as JSON writes it: no leading zeros, no plus sign, no blanks.
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

    fn kind(values: &[&str], text: TextInterpretation) -> String {
        let mut seen = ColumnTypeInference::default();
        values.iter().for_each(|value| seen.add(value, text));
        seen.kind(text).to_string()
    }

    #[test]
    fn the_type_of_a_json_column_follows_from_its_values_as_in_duckdb() {
        for (values, expected) in [
            (&["1", "null", "-5"][..], "BIGINT"),
            (&["1", "2.5"], "DOUBLE"),
            (&["1", "18446744073709551615"], "HUGEINT"),
            (&["true", "null"], "BOOLEAN"),
            (&["\"1\"", "\"x\""], "VARCHAR"),
            (&["\"2024-01-01\""], "DATE"),
            (&["\"2024-01-01T10:00:00\"", "\"2024-01-01 10:00:00.5\""], "TIMESTAMP"),
            (&["\"2024-01-01\"", "\"2024-01-01 10:00:00\""], "VARCHAR"),
            (&["\"2024-01-01T10:00:00Z\"", "\"2024-01-01 10:00:00.5+02:00\""], "TIMESTAMP WITH TIME ZONE"),
            (&["\"2024-01-01T10:00:00Z\"", "\"2024-01-01T10:00:00\""], "VARCHAR"),
            (&["\"2024-01-01T10:00:00Zulu\""], "VARCHAR"),
            (&["\"2024-02-30\""], "VARCHAR"),
            (&["[1]", "[2.5]"], "DOUBLE[]"),
            (&["[1]", "[\"a\"]"], "JSON[]"),
            (&["[]"], "JSON[]"),
            (&["{\"a\":1}", "{\"b\":\"x\"}"], "STRUCT(a BIGINT, b VARCHAR)"),
            (&["{\"a\":1}", "{\"a\":\"x\"}"], "STRUCT(a JSON)"),
            (&["{}"], "JSON"),
            (&["[1]", "{}"], "JSON"),
            (&["\"x\"", "1"], "JSON"),
            (&["true", "0"], "JSON"),
            (&["null"], "\"NULL\""),
        ] {
            assert_eq!(kind(values, TextInterpretation::AlwaysText), expected, "{values:?}");
        }
    }

    #[test]
    fn text_that_is_all_of_one_type_has_it_where_the_format_knows_only_text() {
        for (values, expected) in [
            (&[r#""1""#, r#""""#, r#""-5""#][..], "BIGINT"),
            (&[r#""1""#, r#""2.50""#], "DOUBLE"),
            (&[r#""01""#, r#""2""#], "VARCHAR"),
            (&[r#""+1""#], "VARCHAR"),
            (&[r#"" 1""#], "VARCHAR"),
            (&[r#""true""#, r#""false""#], "BOOLEAN"),
            (&[r#""true""#, r#""1""#], "VARCHAR"),
            (&[r#""2024-01-01""#, r#""""#], "DATE"),
            (&[r#""""#, "null"], "VARCHAR"),
        ] {
            assert_eq!(kind(values, TextInterpretation::AnyType), expected, "{values:?}");
        }
    }

    #[test]
    fn a_column_that_is_text_because_of_some_values_says_so() {
        let note = |values: &[&str], column: &str| {
            let mut seen = ColumnTypeInference::default();
            values.iter().for_each(|value| seen.add(value, TextInterpretation::AnyType));
            seen.text_note(column)
        };
        assert_eq!(
            note(&[r#""1""#, r#""1,50""#], "price").unwrap(),
            "`price` is text because of values such as `1,50`: read numbers with a decimal comma with \
             `CAST(replace(price, ',', '.') AS DOUBLE)`"
        );
        assert!(
            note(&[r#""n/a""#, r#""28.11.2023""#], "day")
                .unwrap()
                .contains("read them with `strptime(day, '%d.%m.%Y')`")
        );
        assert!(
            note(&[r#""1.234,50""#], "a b")
                .unwrap()
                .contains(r#"replace(replace("a b", '.', ''), ',', '.')"#)
        );
        let forms = note(&[r#""2024-01-01""#, r#""2024-01-01 10:00:00""#], "t").unwrap();
        assert!(forms.contains("several formats: read them with `CAST(t AS TIMESTAMP)`"), "{forms}");
        assert!(
            note(&[r#""1""#, r#""n/a""#], "x")
                .unwrap()
                .contains("use `TRY_CAST(x AS DOUBLE)` for the numbers")
        );
        for words in [&[r#""a, b""#][..], &[r#""1,2,3""#], &[r#""x""#], &[r#""1""#]] {
            assert_eq!(note(words, "x"), None, "{words:?}");
        }
    }

    #[test]
    fn numbers_are_distinguished_from_what_only_looks_like_them() {
        for (text, expected) in [
            ("0", true),
            ("-12", true),
            ("1.50", true),
            ("1.5E-3", true),
            ("", false),
            ("-", false),
            ("01", false),
            ("+1", false),
            ("1.", false),
            (".5", false),
            ("1e", false),
            ("0x10", false),
            ("NaN", false),
        ] {
            assert_eq!(is_number(text), expected, "{text}");
        }
    }
}
