//! Column types, which are widened until every value fits.

use std::collections::HashMap;

use super::cells::{JsonField, array_items, decode_string, object_fields};
use super::values::{
    EXACT_DOUBLES, JsonShape, is_written_whole, json_shape, parse_date_days, parse_double,
    parse_timestamp_micros, parse_whole,
};

/// Objects with more names are kept as JSON text.
const MAX_FIELDS: usize = 1_000;

/// The type of a column. All columns are nullable.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OutputType {
    /// Only nulls were seen so far.
    Unknown,
    Bool,
    Whole(WholeNumbers),
    Double,
    Text,
    Date,
    Time,
    List(Box<Self>),
    Struct(StructFields),
    /// Values without a common type, as JSON text.
    Json,
}

/// Integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WholeNumbers {
    /// Whether a schema declares them, so that `3.0` is one.
    pub(super) declared: bool,
    /// Whether any value is not exact as a double.
    pub(super) wide: bool,
}

/// The fields of an object, in the order of their first occurrence.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct StructFields {
    pub(super) list: Vec<(String, OutputType)>,
    places: HashMap<String, usize>,
}

impl OutputType {
    /// Widens the type until the value fits.
    pub(super) fn widen_for(&mut self, json: &str) {
        if let Some(wider) = self.widened(json, json_shape(json)) {
            *self = wider;
        }
    }

    /// The wider type to change to; `None` if the value fits.
    fn widened(&mut self, json: &str, shape: JsonShape) -> Option<Self> {
        let unless = |fits: bool, wider: Self| (!fits).then_some(wider);
        match (self, shape) {
            (_, JsonShape::Null) | (Self::Json, _) | (Self::Bool, JsonShape::Bool) => None,
            (Self::Unknown, shape) => Some(Self::first(json, shape)),
            (Self::Text, JsonShape::Text) => unless(decode_string(json).is_some(), Self::Json),
            (Self::Date, JsonShape::Text) => unless(parse_date_days(json).is_some(), text(json)),
            (Self::Time, JsonShape::Text) => unless(parse_timestamp_micros(json).is_some(), text(json)),
            (Self::Whole(known), JsonShape::Number) => known.admit(json),
            (Self::Double, JsonShape::Number) => unless(parse_double(json).is_some(), Self::Json),
            (Self::List(item), JsonShape::List) => {
                let items = array_items(json)?;
                items.iter().for_each(|value| item.widen_for(value));
                unless(**item != Self::Json, Self::Json)
            }
            (Self::Struct(known), JsonShape::Object) => {
                unless(known.widen_for(&object_fields(json)?), Self::Json)
            }
            _ => Some(Self::Json),
        }
    }

    /// The type of a column's first value if nothing else is known about the column.
    fn first(json: &str, shape: JsonShape) -> Self {
        match shape {
            JsonShape::Bool => Self::Bool,
            JsonShape::Text => text(json),
            JsonShape::Number if is_written_whole(json) => {
                let mut known = WholeNumbers::default();
                known.admit(json).unwrap_or(Self::Whole(known))
            }
            JsonShape::Number if parse_double(json).is_some() => Self::Double,
            JsonShape::Null | JsonShape::Number | JsonShape::List | JsonShape::Object => Self::Json,
        }
    }
}

fn text(json: &str) -> OutputType {
    if decode_string(json).is_some() { OutputType::Text } else { OutputType::Json }
}

impl WholeNumbers {
    fn admit(&mut self, json: &str) -> Option<OutputType> {
        match parse_whole(json).filter(|_| self.declared || is_written_whole(json)) {
            Some(value) => {
                self.wide |= value.unsigned_abs() > EXACT_DOUBLES;
                None
            }
            None if !self.wide && parse_double(json).is_some() => Some(OutputType::Double),
            None => Some(OutputType::Json),
        }
    }
}

impl StructFields {
    /// Adds a field, or replaces an earlier one of that name.
    pub(super) fn add(&mut self, name: String, kind: OutputType) {
        let place = self.place(&name);
        if let Some((_, known)) = self.list.get_mut(place) {
            *known = kind;
        }
    }

    /// Adds the values of an object; `false` if there are too many names.
    pub(super) fn widen_for(&mut self, values: &[JsonField<'_>]) -> bool {
        for (name, json) in values {
            let place = self.place(name);
            if let Some((_, kind)) = self.list.get_mut(place) {
                kind.widen_for(json);
            }
        }
        self.list.len() <= MAX_FIELDS
    }

    /// Adds only the names of an object; `false` if there are too many.
    pub(super) fn admit_names(&mut self, values: &[JsonField<'_>]) -> bool {
        values.iter().for_each(|(name, _)| {
            self.place(name);
        });
        self.list.len() <= MAX_FIELDS
    }

    /// The index of a field.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.places.insert(name.to_owned(), self.list.len());
        self.list.push((name.to_owned(), OutputType::Unknown));
        self.list.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[&str]) -> OutputType {
        let mut kind = OutputType::Unknown;
        values.iter().for_each(|json| kind.widen_for(json));
        kind
    }

    #[test]
    fn a_column_without_a_schema_gets_the_narrowest_type_that_holds_everything() {
        assert_eq!(seen(&["null"]), OutputType::Unknown);
        assert_eq!(seen(&["true", "null", "false"]), OutputType::Bool);
        assert!(matches!(seen(&["1", "9007199254740993"]), OutputType::Whole(_)));
        assert_eq!(seen(&["1", "2.5", "3"]), OutputType::Double);
        assert_eq!(seen(&["1.0", "2"]), OutputType::Double);
        assert_eq!(seen(&["\"a\"", "\"b\\n\""]), OutputType::Text);
        for mixed in [
            ["1", "\"a\""],
            ["9007199254740993", "0.5"],
            ["0.5", "9007199254740993"],
            ["1", "9223372036854775808"],
            ["true", "1"],
            ["[1]", "[2]"],
            ["{\"a\":1}", "{\"a\":2}"],
            ["\"\\ud800\"", "\"a\""],
        ] {
            assert_eq!(seen(&mixed), OutputType::Json, "{mixed:?}");
        }
    }

    #[test]
    fn a_declared_type_holds_until_a_value_does_not_fit() {
        let declared = OutputType::Whole(WholeNumbers { declared: true, ..WholeNumbers::default() });
        for (kind, json, expected) in [
            (declared.clone(), "3.0", declared.clone()),
            (declared.clone(), "18446744073709551616", OutputType::Json),
            (OutputType::Double, "12345678901234567890", OutputType::Json),
            (OutputType::Date, "\"2026-11-17\"", OutputType::Date),
            (OutputType::Date, "\"tomorrow\"", OutputType::Text),
            (OutputType::Time, "\"2026-11-17\"", OutputType::Text),
            (
                OutputType::List(Box::new(OutputType::Text)),
                "[\"a\",null]",
                OutputType::List(Box::new(OutputType::Text)),
            ),
            (OutputType::List(Box::new(OutputType::Text)), "[\"a\",1]", OutputType::Json),
            (OutputType::List(Box::new(OutputType::Text)), "\"a\"", OutputType::Json),
        ] {
            let mut widened = kind.clone();
            widened.widen_for(json);
            assert_eq!(widened, expected, "{kind:?} {json}");
        }
    }

    #[test]
    fn a_field_that_the_schema_does_not_name_is_added() {
        let mut known = StructFields::default();
        known.add("a".into(), OutputType::Text);
        let mut kind = OutputType::Struct(known.clone());
        kind.widen_for(r#"{"a":"x","b":true}"#);
        known.add("b".into(), OutputType::Bool);
        assert_eq!(kind, OutputType::Struct(known));
    }

    #[test]
    fn an_object_with_a_thousand_names_and_more_is_kept_as_json() {
        let mut kind = OutputType::Struct(StructFields::default());
        for n in 0..=MAX_FIELDS {
            kind.widen_for(&format!("{{\"field {n}\":1}}"));
        }
        assert_eq!(kind, OutputType::Json);
    }
}
