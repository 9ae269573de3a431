//! How settings specify the number of calls in flight: `"auto"`, a number, or `{"auto_up_to": 20}`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::CallParallelism;

const AUTO: &str = "auto";
const AUTO_UP_TO: &str = "auto_up_to";

impl Serialize for CallParallelism {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Auto => serializer.serialize_str(AUTO),
            Self::AtMost(most) => serializer.serialize_u64(most as u64),
            Self::AutoUpTo(most) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(AUTO_UP_TO, &most)?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for CallParallelism {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParallelVisitor)
    }
}

struct ParallelVisitor;

impl<'de> Visitor<'de> for ParallelVisitor {
    type Value = CallParallelism;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("`auto`, a number of rows, or `{\"auto_up_to\": N}`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<CallParallelism, E> {
        match text {
            AUTO => Ok(CallParallelism::Auto),
            _ => Err(E::custom("must be `auto` or a number of rows")),
        }
    }

    fn visit_u64<E: Error>(self, most: u64) -> Result<CallParallelism, E> {
        at_least_one(most).map(CallParallelism::AtMost)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<CallParallelism, E> {
        at_least_one(0).map(CallParallelism::AtMost)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CallParallelism, A::Error> {
        match map.next_key::<String>()?.as_deref() {
            Some(AUTO_UP_TO) => {}
            Some(other) => return Err(A::Error::unknown_field(other, &[AUTO_UP_TO])),
            None => return Err(A::Error::missing_field(AUTO_UP_TO)),
        }
        let most = at_least_one(map.next_value()?)?;
        match map.next_key::<String>()? {
            None => Ok(CallParallelism::AutoUpTo(most)),
            Some(other) => Err(A::Error::unknown_field(&other, &[AUTO_UP_TO])),
        }
    }
}

fn at_least_one<E: Error>(most: u64) -> Result<usize, E> {
    match usize::try_from(most) {
        Ok(0) => Err(E::custom("must be greater than zero")),
        Ok(most) => Ok(most),
        Err(_) => Err(E::custom("is too large")),
    }
}

impl JsonSchema for CallParallelism {
    fn schema_name() -> Cow<'static, str> {
        "Parallel".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How many calls may be in flight.",
            "anyOf": [
                {"const": AUTO, "description": "Adapts to the provider."},
                {"type": "integer", "minimum": 1, "description": "At most this many."},
                {
                    "description": "Adapts to the provider, up to this many.",
                    "type": "object",
                    "properties": {AUTO_UP_TO: {"type": "integer", "minimum": 1}},
                    "required": [AUTO_UP_TO],
                    "additionalProperties": false,
                },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_stand_for_what_the_flag_means_by_them() {
        for (parallel, json) in [
            (CallParallelism::Auto, "\"auto\""),
            (CallParallelism::AtMost(8), "8"),
            (CallParallelism::AutoUpTo(20), "{\"auto_up_to\":20}"),
        ] {
            assert_eq!(serde_json::to_string(&parallel).unwrap(), json);
            assert_eq!(serde_json::from_str::<CallParallelism>(json).unwrap(), parallel);
        }
        for wrong in
            ["0", "-1", "1.5", "\"many\"", "null", "{}", "{\"up_to\":1}", "{\"auto_up_to\":1,\"auto\":2}"]
        {
            assert!(serde_json::from_str::<CallParallelism>(wrong).is_err(), "{wrong}");
        }
    }
}
