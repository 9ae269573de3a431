//! One record of the input, kept as the text it came as.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::ErrorKind;

/// One row: a JSON object, kept as text so that number text, key order and
/// unknown fields survive untouched.
///
/// ```
/// # use rowmill_types::Row;
/// let row = Row::parse(1, r#"{"a": 1.50, "b": "x"}"#.into()).unwrap();
/// assert_eq!(row.field("a"), Some("1.50"));
/// assert_eq!(row.field("b"), Some("\"x\""));
/// assert_eq!(row.field("c"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    number: u64,
    text: String,
    fields: Vec<Field>,
}

/// A top-level field of a row: its name and where its JSON text stands in the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The decoded name.
    pub name: Box<str>,
    /// Byte range of the value's JSON text in [`Row::text`].
    pub value: Range<usize>,
}

/// A place in the input that should have been a row and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The row number it would have had.
    pub number: u64,
    /// Which kind of failure it becomes.
    pub kind: ErrorKind,
    /// What was wrong and where.
    pub message: String,
}

/// What a source yields: a row, or the failure that stands in its place.
pub type SourceRow = Result<Row, BadRow>;

impl Row {
    /// Parses one JSON object.
    ///
    /// A name that occurs twice keeps the place of the first and the value of
    /// the last, as other JSON readers do.
    ///
    /// # Errors
    ///
    /// Text that is not JSON, or is JSON but not an object, or holds half of a
    /// surrogate pair, is a [`BadRow`] whose message begins with `Line N: `.
    pub fn parse(number: u64, text: String) -> Result<Self, BadRow> {
        let bad = |kind, what: String| BadRow { number, kind, message: format!("Line {number}: {what}") };
        let first = text.trim_start().as_bytes().first().copied();
        if first.is_some_and(|byte| byte != b'{') {
            let kind_of_value = match serde_json::from_str::<IgnoredAny>(&text) {
                Ok(_) => json_type_name(first),
                Err(error) => return Err(bad(ErrorKind::InvalidJson, error.to_string())),
            };
            let what = format!("expected a JSON object, got {kind_of_value}");
            return Err(bad(ErrorKind::InvalidRow, what));
        }
        let mut reader = serde_json::Deserializer::from_str(&text);
        let fields = reader
            .deserialize_map(FieldsVisitor { text: &text })
            .and_then(|fields| reader.end().map(|()| fields))
            .map_err(|error| bad(ErrorKind::InvalidJson, error.to_string()))?;
        if has_lone_surrogate(&text) {
            return Err(bad(ErrorKind::InvalidJson, "half of a surrogate pair in a `\\u` escape".into()));
        }
        Ok(Self { number, text, fields })
    }

    /// A row from parts that are known to fit together: `fields` must point at
    /// the values inside `text`, which must be one JSON object.
    #[must_use]
    pub fn from_parts(number: u64, text: String, fields: Vec<Field>) -> Self {
        Self { number, text, fields }
    }

    /// Where it stands in the input, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The object as JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The JSON text of a top-level field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|field| &*field.name == name)?;
        self.text.get(field.value.clone())
    }

    /// All top-level fields in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|field| (&*field.name, self.text.get(field.value.clone()).unwrap_or("null")))
    }
}

struct FieldsVisitor<'t> {
    text: &'t str,
}

impl<'t> Visitor<'t> for FieldsVisitor<'t> {
    type Value = Vec<Field>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'t>>(self, mut map: M) -> Result<Vec<Field>, M::Error> {
        let mut fields: Vec<Field> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let raw: &'t RawValue = map.next_value()?;
            let start = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
            let value = start..start + raw.get().len();
            match fields.iter_mut().find(|field| *field.name == *name) {
                Some(earlier) => earlier.value = value,
                None => fields.push(Field { name: name.into(), value }),
            }
        }
        Ok(fields)
    }
}

/// Raw values are skipped over, not decoded, so an escape for half a surrogate
/// pair would pass unseen; only text that holds such an escape pays for a full parse.
fn has_lone_surrogate(text: &str) -> bool {
    let surrogate = |(at, _)| {
        matches!(
            text.as_bytes().get(at + 2..at + 4),
            Some([b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F'])
        )
    };
    text.match_indices("\\u").any(surrogate) && serde_json::from_str::<serde_json::Value>(text).is_err()
}

fn json_type_name(first: Option<u8>) -> &'static str {
    match first {
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// What names a row in its envelope.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowId {
    /// The row number, when no id field was named.
    Number(u64),
    /// The string value of the id field.
    Text(Box<str>),
}

impl RowId {
    /// Appends the id as JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Self::Text(text) => {
                // Writing a string into memory cannot fail.
                let written = serde_json::to_writer(&mut *out, text);
                debug_assert!(written.is_ok(), "a string is always JSON");
            }
        }
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(out, "{number}"),
            Self::Text(text) => out.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        Row::parse(7, text.into()).unwrap_err().message
    }

    #[test]
    fn a_repeated_name_keeps_the_first_place_and_the_last_value() {
        let row = Row::parse(1, r#"{"a":1,"b":2,"a":3}"#.into()).unwrap();
        assert_eq!(row.fields().collect::<Vec<_>>(), [("a", "3"), ("b", "2")]);
    }

    #[test]
    fn json_that_is_no_object_says_what_it_is() {
        for (text, name) in [
            ("[1]", "an array"),
            ("\"x\"", "a string"),
            ("1", "a number"),
            ("null", "null"),
            ("true", "a boolean"),
        ] {
            assert_eq!(message(text), format!("Line 7: expected a JSON object, got {name}"));
        }
    }

    #[test]
    fn broken_json_names_the_line_and_the_column() {
        assert!(message(r#"{"a": }"#).starts_with("Line 7: expected value at line 1 column 7"));
        assert!(message(r#"{"a": 1} x"#).starts_with("Line 7: trailing characters"));
        assert!(message("nope").starts_with("Line 7: expected"));
    }

    #[test]
    fn half_a_surrogate_pair_is_refused_and_a_whole_one_is_not() {
        assert!(message(r#"{"a":"\ud800"}"#).contains("surrogate"));
        assert!(message(r#"{"a":["\uDC00"]}"#).contains("surrogate"));
        assert!(Row::parse(1, r#"{"a":"\ud83d\ude00"}"#.into()).is_ok());
        assert!(Row::parse(1, r#"{"a":"\\ud800"}"#.into()).is_ok());
    }

    #[test]
    fn numbers_keep_their_text() {
        let row = Row::parse(1, r#"{"n":123456789012345678901234567890,"m":1.50}"#.into()).unwrap();
        assert_eq!(row.field("n"), Some("123456789012345678901234567890"));
        assert_eq!(row.field("m"), Some("1.50"));
    }
}
