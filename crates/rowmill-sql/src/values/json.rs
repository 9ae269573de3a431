//! JSON text: its fields, and its creation from values.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::cast::to_text;
use super::datum::Datum;
use super::json_normal::{normalized, write_real, write_string};
use super::sql_type::SqlType;

/// The fields of a JSON object with the text of their values, in order.
pub(crate) struct RawFields<'j>(pub(crate) Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for RawFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawFields<'de>;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// The JSON text of a value, as DuckDB's `to_json` writes it.
pub(crate) fn to_json(datum: &Datum, kind: &SqlType) -> Option<String> {
    let mut out = String::new();
    write_json(datum, kind, &mut out)?;
    Some(out)
}

fn write_json(datum: &Datum, kind: &SqlType, out: &mut String) -> Option<()> {
    match (datum, kind) {
        (Datum::Null, _) => out.push_str("null"),
        (Datum::Boolean(_) | Datum::Whole(_), _) => out.push_str(&to_text(datum, kind)?),
        (Datum::Real(number), _) if number.is_finite() => write_real(*number, out),
        (Datum::Text(text), SqlType::Json) => out.push_str(&normalized(text)?),
        (Datum::List(items), SqlType::List(item)) => {
            out.push('[');
            for (at, datum) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_json(datum, item, out)?;
            }
            out.push(']');
        }
        (Datum::Struct(values), SqlType::Struct(fields)) => {
            out.push('{');
            for (at, (datum, (name, field))) in values.iter().zip(fields).enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(name, out);
                out.push(':');
                write_json(datum, field, out)?;
            }
            out.push('}');
        }
        // A floating-point number represents this many digits; with more, DuckDB writes all of them.
        (Datum::Decimal(_), SqlType::Decimal(16.., _)) => out.push_str(&to_text(datum, kind)?),
        (Datum::Decimal(_), _) => write_real(to_text(datum, kind)?.parse().ok()?, out),
        (Datum::Real(_) | Datum::Bytes(_), _) => return None,
        _ => write_string(&to_text(datum, kind)?, out),
    }
    Some(())
}
