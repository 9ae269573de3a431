//! Column types, which are widened until every value fits.

use std::collections::HashMap;

use super::cells::{Field, decoded, fields, items};
use super::values::{EXACT_DOUBLES, Shape, days, double, is_written_whole, microseconds, shape, whole};

/// Objects with more names are kept as JSON text.
const MAX_FIELDS: usize = 1_000;

/// The type of a column. All columns are nullable.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Only nulls were seen so far.
    Unknown,
    Bool,
    Whole(Whole),
    Double,
    Text,
    Date,
    Time,
    List(Box<Self>),
    Struct(Fields),
    /// Values without a common type, as JSON text.
    Json,
}

/// Integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Whole {
    /// Whether a schema declares them, so that `3.0` is one.
    pub(super) declared: bool,
    /// Whether any value is not exact as a double.
    pub(super) wide: bool,
}

/// The fields of an object, in the order of their first occurrence.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fields {
    pub(super) list: Vec<(String, Kind)>,
    places: HashMap<String, usize>,
}

impl Kind {
    /// Widens the type until the value fits.
    pub(super) fn admit(&mut self, json: &str) {
        if let Some(wider) = self.widened(json, shape(json)) {
            *self = wider;
        }
    }

    /// The wider type to change to; `None` if the value fits.
    fn widened(&mut self, json: &str, shape: Shape) -> Option<Self> {
        let unless = |fits: bool, wider: Self| (!fits).then_some(wider);
        match (self, shape) {
            (_, Shape::Null) | (Self::Json, _) | (Self::Bool, Shape::Bool) => None,
            (Self::Unknown, shape) => Some(Self::first(json, shape)),
            (Self::Text, Shape::Text) => unless(decoded(json).is_some(), Self::Json),
            (Self::Date, Shape::Text) => unless(days(json).is_some(), text(json)),
            (Self::Time, Shape::Text) => unless(microseconds(json).is_some(), text(json)),
            (Self::Whole(known), Shape::Number) => known.admit(json),
            (Self::Double, Shape::Number) => unless(double(json).is_some(), Self::Json),
            (Self::List(item), Shape::List) => {
                let items = items(json)?;
                items.iter().for_each(|value| item.admit(value));
                unless(**item != Self::Json, Self::Json)
            }
            (Self::Struct(known), Shape::Object) => unless(known.admit(&fields(json)?), Self::Json),
            _ => Some(Self::Json),
        }
    }

    /// The type of a column's first value if nothing else is known about the column.
    fn first(json: &str, shape: Shape) -> Self {
        match shape {
            Shape::Bool => Self::Bool,
            Shape::Text => text(json),
            Shape::Number if is_written_whole(json) => {
                let mut known = Whole::default();
                known.admit(json).unwrap_or(Self::Whole(known))
            }
            Shape::Number if double(json).is_some() => Self::Double,
            Shape::Null | Shape::Number | Shape::List | Shape::Object => Self::Json,
        }
    }
}

fn text(json: &str) -> Kind {
    if decoded(json).is_some() { Kind::Text } else { Kind::Json }
}

impl Whole {
    fn admit(&mut self, json: &str) -> Option<Kind> {
        match whole(json).filter(|_| self.declared || is_written_whole(json)) {
            Some(value) => {
                self.wide |= value.unsigned_abs() > EXACT_DOUBLES;
                None
            }
            None if !self.wide && double(json).is_some() => Some(Kind::Double),
            None => Some(Kind::Json),
        }
    }
}

impl Fields {
    /// Adds a field, or replaces an earlier one of that name.
    pub(super) fn add(&mut self, name: String, kind: Kind) {
        let place = self.place(&name);
        if let Some((_, known)) = self.list.get_mut(place) {
            *known = kind;
        }
    }

    /// Adds the values of an object; `false` if there are too many names.
    pub(super) fn admit(&mut self, values: &[Field<'_>]) -> bool {
        for (name, json) in values {
            let place = self.place(name);
            if let Some((_, kind)) = self.list.get_mut(place) {
                kind.admit(json);
            }
        }
        self.list.len() <= MAX_FIELDS
    }

    /// Adds only the names of an object; `false` if there are too many.
    pub(super) fn admit_names(&mut self, values: &[Field<'_>]) -> bool {
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
        self.list.push((name.to_owned(), Kind::Unknown));
        self.list.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[&str]) -> Kind {
        let mut kind = Kind::Unknown;
        values.iter().for_each(|json| kind.admit(json));
        kind
    }

    #[test]
    fn a_column_without_a_schema_gets_the_narrowest_type_that_holds_everything() {
        assert_eq!(seen(&["null"]), Kind::Unknown);
        assert_eq!(seen(&["true", "null", "false"]), Kind::Bool);
        assert!(matches!(seen(&["1", "9007199254740993"]), Kind::Whole(_)));
        assert_eq!(seen(&["1", "2.5", "3"]), Kind::Double);
        assert_eq!(seen(&["1.0", "2"]), Kind::Double);
        assert_eq!(seen(&["\"a\"", "\"b\\n\""]), Kind::Text);
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
            assert_eq!(seen(&mixed), Kind::Json, "{mixed:?}");
        }
    }

    #[test]
    fn a_declared_type_holds_until_a_value_does_not_fit() {
        let declared = Kind::Whole(Whole { declared: true, ..Whole::default() });
        for (kind, json, expected) in [
            (declared.clone(), "3.0", declared.clone()),
            (declared.clone(), "18446744073709551616", Kind::Json),
            (Kind::Double, "12345678901234567890", Kind::Json),
            (Kind::Date, "\"2026-11-17\"", Kind::Date),
            (Kind::Date, "\"tomorrow\"", Kind::Text),
            (Kind::Time, "\"2026-11-17\"", Kind::Text),
            (Kind::List(Box::new(Kind::Text)), "[\"a\",null]", Kind::List(Box::new(Kind::Text))),
            (Kind::List(Box::new(Kind::Text)), "[\"a\",1]", Kind::Json),
            (Kind::List(Box::new(Kind::Text)), "\"a\"", Kind::Json),
        ] {
            let mut widened = kind.clone();
            widened.admit(json);
            assert_eq!(widened, expected, "{kind:?} {json}");
        }
    }

    #[test]
    fn a_field_that_the_schema_does_not_name_is_added() {
        let mut known = Fields::default();
        known.add("a".into(), Kind::Text);
        let mut kind = Kind::Struct(known.clone());
        kind.admit(r#"{"a":"x","b":true}"#);
        known.add("b".into(), Kind::Bool);
        assert_eq!(kind, Kind::Struct(known));
    }

    #[test]
    fn an_object_with_a_thousand_names_and_more_is_kept_as_json() {
        let mut kind = Kind::Struct(Fields::default());
        for n in 0..=MAX_FIELDS {
            kind.admit(&format!("{{\"field {n}\":1}}"));
        }
        assert_eq!(kind, Kind::Json);
    }
}
