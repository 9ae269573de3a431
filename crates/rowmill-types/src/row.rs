//! One record of the input, kept as its original text.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::RowErrorKind;
use crate::row_layout::SharedFields;
use crate::row_scan::scan_object;

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
#[derive(Debug, Clone)]
pub struct Row {
    number: u64,
    text: String,
    fields: RowFields,
}

/// The positions of the fields of a row.
#[derive(Debug, Clone)]
enum RowFields {
    Own(Vec<FieldSpan>),
    Shared(SharedFields),
}

/// Rows with the same text are equal, however they store their fields.
impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && self.text == other.text && self.fields().eq(other.fields())
    }
}

impl Eq for Row {}

/// A top-level field of a row: the positions of its name and its JSON text in the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSpan {
    name: FieldNameSpan,
    value: Range<usize>,
}

/// Most names are found verbatim in the text, and then take no memory of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FieldNameSpan {
    Plain(Range<usize>),
    Decoded(Box<str>),
}

impl FieldSpan {
    /// A field whose name appears in the text without escapes. Both are byte ranges of [`Row::json_text`]; that of the name
    /// excludes its quotes.
    #[must_use]
    pub fn with_plain_name(name: Range<usize>, value: Range<usize>) -> Self {
        Self { name: FieldNameSpan::Plain(name), value }
    }

    /// A field whose name is escaped in the text, and therefore stored separately.
    #[must_use]
    pub fn with_decoded_name(name: impl Into<Box<str>>, value: Range<usize>) -> Self {
        Self { name: FieldNameSpan::Decoded(name.into()), value }
    }

    fn name<'t>(&'t self, text: &'t str) -> &'t str {
        match &self.name {
            FieldNameSpan::Plain(range) => text.get(range.clone()).unwrap_or_default(),
            FieldNameSpan::Decoded(name) => name,
        }
    }
}

/// A record of the input that is not a valid row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The row number that it would have had.
    pub number: u64,
    /// The resulting kind of failure.
    pub kind: RowErrorKind,
    /// What was wrong and where.
    pub message: String,
}

/// What a source yields: a row, or the failure in its place.
pub type RowReadResult = Result<Row, BadRow>;

impl Row {
    /// Parses one JSON object.
    ///
    /// A name that occurs twice keeps the position of the first and the value of the last occurrence, as in other JSON
    /// readers.
    ///
    /// # Errors
    ///
    /// Text that is not JSON, or is not a JSON object, or contains an unpaired surrogate, is a [`BadRow`] whose message
    /// begins with `Line N: `.
    pub fn parse(number: u64, text: String) -> Result<Self, BadRow> {
        let bad = |kind, what: String| {
            // The parser sees only one line and calls it line 1, which would be misleading.
            let what = what.replace(" at line 1 column ", " at column ");
            BadRow { number, kind, message: format!("Line {number}: {what}") }
        };
        let first = text.trim_start().as_bytes().first().copied();
        if first.is_some_and(|byte| byte != b'{') {
            let kind_of_value = match serde_json::from_str::<IgnoredAny>(&text) {
                Ok(_) => json_type_name(first),
                Err(error) => return Err(bad(RowErrorKind::InvalidJson, error.to_string())),
            };
            let what = format!("expected a JSON object, got {kind_of_value}");
            return Err(bad(RowErrorKind::InvalidRow, what));
        }
        let mut fields = match scan_object(&text) {
            Some(fields) => fields,
            None => read_carefully(&text).map_err(|what| bad(RowErrorKind::InvalidJson, what))?,
        };
        resolve_repeats(&text, &mut fields);
        Ok(Self { number, text, fields: RowFields::Own(fields) })
    }

    /// A row from consistent parts: `fields` must point at the values inside `text`, which must be one JSON object.
    #[must_use]
    pub fn from_parts(number: u64, text: String, fields: Vec<FieldSpan>) -> Self {
        Self { number, text, fields: RowFields::Own(fields) }
    }

    pub(crate) fn from_shared(number: u64, text: String, fields: SharedFields) -> Self {
        Self { number, text, fields: RowFields::Shared(fields) }
    }

    /// The same row with additional fields, each a name and its JSON text. An existing field keeps its position and
    /// gets the new value.
    ///
    /// ```
    /// # use rowmill_types::Row;
    /// let row = Row::parse(1, r#"{"a": 1, "b": 2}"#.into()).unwrap();
    /// let row = row.with_added_fields([("b", "3"), ("c", "4")].into_iter());
    /// assert_eq!(row.json_text(), r#"{"a":1,"b":3,"c":4}"#);
    /// ```
    #[must_use]
    pub fn with_added_fields<'f>(&self, added: impl Iterator<Item = (&'f str, &'f str)>) -> Self {
        let mut fields: Vec<(&str, &str)> = self.fields().collect();
        for (name, json) in added {
            match fields.iter_mut().find(|(known, _)| *known == name) {
                Some(known) => known.1 = json,
                None => fields.push((name, json)),
            }
        }
        let mut text = String::with_capacity(self.text.len() + 64);
        let mut places = Vec::with_capacity(fields.len());
        for (name, json) in fields {
            text.push(if places.is_empty() { '{' } else { ',' });
            let start = text.len();
            // A string is always JSON.
            text.push_str(&serde_json::to_string(name).unwrap_or_default());
            let end = text.len();
            text.push(':');
            let value = text.len()..text.len() + json.len();
            text.push_str(json);
            let is_plain = end - start == name.len() + 2;
            places.push(match is_plain {
                true => FieldSpan::with_plain_name(start + 1..end - 1, value),
                false => FieldSpan::with_decoded_name(name, value),
            });
        }
        text.push_str(if places.is_empty() { "{}" } else { "}" });
        Self::from_parts(self.number, text, places)
    }

    /// Its position in the input, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The object as JSON text.
    #[must_use]
    pub fn json_text(&self) -> &str {
        &self.text
    }

    /// The JSON text of a top-level field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let place = match &self.fields {
            RowFields::Own(fields) => {
                fields.iter().find(|field| field.name(&self.text) == name)?.value.clone()
            }
            RowFields::Shared(fields) => fields.value(fields.columns.column_index(name)?)?,
        };
        self.text.get(place)
    }

    /// All top-level fields in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let count = match &self.fields {
            RowFields::Own(fields) => fields.len(),
            RowFields::Shared(fields) => fields.columns.len(),
        };
        (0..count).filter_map(|at| self.field_at(at))
    }

    fn field_at(&self, at: usize) -> Option<(&str, &str)> {
        let (name, place) = match &self.fields {
            RowFields::Own(fields) => {
                fields.get(at).map(|field| (field.name(&self.text), field.value.clone()))?
            }
            RowFields::Shared(fields) => (fields.columns.name(at)?, fields.value(at)?),
        };
        Some((name, self.text.get(place).unwrap_or("null")))
    }
}

/// Parses what the fast scan cannot handle: returns the fields, or what is wrong.
fn read_carefully(text: &str) -> Result<Vec<FieldSpan>, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let fields = reader
        .deserialize_map(FieldsVisitor { text })
        .and_then(|fields| reader.end().map(|()| fields))
        .map_err(|error| error.to_string())?;
    if has_lone_surrogate(text) {
        return Err("half of a surrogate pair in a `\\u` escape".into());
    }
    Ok(fields)
}

struct FieldsVisitor<'t> {
    text: &'t str,
}

impl<'t> Visitor<'t> for FieldsVisitor<'t> {
    type Value = Vec<FieldSpan>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'t>>(self, mut map: M) -> Result<Vec<FieldSpan>, M::Error> {
        let place = |raw: &RawValue| {
            let start = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
            start..start + raw.get().len()
        };
        let mut fields: Vec<FieldSpan> = Vec::new();
        while let Some(name) = map.next_key::<&'t RawValue>()? {
            let value = place(map.next_value::<&'t RawValue>()?);
            if name.get().contains('\\') {
                let decoded: String = serde_json::from_str(name.get()).map_err(serde::de::Error::custom)?;
                fields.push(FieldSpan::with_decoded_name(decoded, value));
            } else {
                let quoted = place(name);
                fields.push(FieldSpan::with_plain_name(quoted.start + 1..quoted.end - 1, value));
            }
        }
        Ok(fields)
    }
}

/// Gives a repeated name its first position and its last value.
fn resolve_repeats(text: &str, fields: &mut Vec<FieldSpan>) {
    const FEW: usize = 16;
    let unique = if fields.len() <= FEW {
        let earlier = |at: usize| fields.iter().take(at);
        fields.iter().enumerate().all(|(at, field)| {
            let name = field.name(text);
            earlier(at).all(|other| other.name(text) != name)
        })
    } else {
        let mut seen = HashSet::with_capacity(fields.len());
        fields.iter().all(|field| seen.insert(field.name(text)))
    };
    if unique {
        return;
    }
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut kept: Vec<FieldSpan> = Vec::with_capacity(fields.len());
    for field in fields.drain(..) {
        match places.get(field.name(text)).and_then(|place| kept.get_mut(*place)) {
            Some(first) => first.value = field.value,
            None => {
                places.insert(field.name(text).to_owned(), kept.len());
                kept.push(field);
            }
        }
    }
    *fields = kept;
}

/// Raw values are skipped, not decoded, so an escape for an unpaired surrogate would go unnoticed. `text` must be valid
/// JSON otherwise.
fn has_lone_surrogate(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let Some(start) = rest.iter().position(|byte| *byte == b'\\') {
        let escape = rest.get(start..).unwrap_or_default();
        let length = match (unicode_escape(escape), unicode_escape(escape.get(6..).unwrap_or_default())) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => return true,
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    false
}

/// The code of the `\uXXXX` at the start of `bytes`.
fn unicode_escape(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
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

/// The id of a row in its envelope.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowId {
    /// The row number, if no id field was named.
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
#[path = "row_tests.rs"]
mod tests;
