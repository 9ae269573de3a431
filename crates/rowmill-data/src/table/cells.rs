//! Splits envelopes, objects and arrays without decoding their values.
//!
//! Values stay JSON text, so that numbers keep their digits.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A field of an object: its name and the JSON text of its value.
pub(super) type JsonField<'a> = (Cow<'a, str>, &'a str);

/// The parts of an envelope, each as JSON text.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnvelopeParts<'a> {
    pub(super) id: &'a str,
    pub(super) number: &'a str,
    pub(super) ok: bool,
    /// `None` for a row without a result.
    pub(super) result: Option<&'a str>,
    /// `None` for a successful row.
    pub(super) error: Option<&'a str>,
    pub(super) reused: Option<&'a str>,
    /// `None` if the envelope has no input; `null` if the input could not be read.
    pub(super) input: Option<&'a str>,
}

#[derive(serde::Deserialize)]
struct EnvelopeFields<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    row_number: &'a RawValue,
    ok: bool,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reused: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    input: Option<&'a RawValue>,
}

/// Distinguishes `null` from a missing field.
fn present<'a, D: Deserializer<'a>>(input: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

impl<'a> EnvelopeParts<'a> {
    /// Splits an envelope into its parts.
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        let fields: EnvelopeFields<'a> = serde_json::from_slice(line)?;
        Ok(Self {
            id: fields.id.get(),
            number: fields.row_number.get(),
            ok: fields.ok,
            result: fields.result.map(RawValue::get),
            error: fields.error.map(RawValue::get),
            reused: fields.reused.map(RawValue::get),
            input: fields.input.map(RawValue::get),
        })
    }

    /// `ok` as JSON text.
    pub(super) fn ok_text(&self) -> &'static str {
        if self.ok { "true" } else { "false" }
    }
}

struct FieldsVisitor;

impl<'a> Visitor<'a> for FieldsVisitor {
    type Value = Vec<JsonField<'a>>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut fields = Vec::with_capacity(8);
        while let Some(name) = map.next_key::<&'a RawValue>()? {
            let name =
                decode_string(name.get()).ok_or_else(|| serde::de::Error::custom("a name is broken"))?;
            fields.push((name, map.next_value::<&'a RawValue>()?.get()));
        }
        Ok(fields)
    }
}

/// The fields of the object `json`, repeated names included; `None` for anything else.
pub(super) fn object_fields(json: &str) -> Option<Vec<JsonField<'_>>> {
    if !json.starts_with('{') {
        return None;
    }
    serde_json::Deserializer::from_str(json).deserialize_map(FieldsVisitor).ok()
}

/// The items of the array `json`; `None` for anything else.
pub(super) fn array_items(json: &str) -> Option<Vec<&str>> {
    if !json.starts_with('[') {
        return None;
    }
    let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// The text of the string `json`; `None` for anything else.
pub(super) fn decode_string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(json).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// A value as plain text: strings without quotes, `null` as empty text.
pub(super) fn plain_text(json: &str) -> Cow<'_, str> {
    match decode_string(json) {
        Some(text) => text,
        None if json == "null" => Cow::Borrowed(""),
        None => Cow::Borrowed(json),
    }
}

/// The value at a path of names separated by dots. Names that contain dots are found too.
pub(super) fn value_at_path<'a>(json: &'a str, path: &str) -> Option<&'a str> {
    let fields = object_fields(json)?;
    let named = |name: &str| fields.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value);
    if let Some(value) = named(path) {
        return Some(value);
    }
    let splits = path.match_indices('.').map(|(at, _)| path.split_at(at));
    splits
        .filter_map(|(name, rest)| Some((named(name)?, rest.strip_prefix('.')?)))
        .find_map(|(inner, rest)| value_at_path(inner, rest))
}
