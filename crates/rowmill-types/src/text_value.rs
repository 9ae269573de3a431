//! Values that settings represent as text.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Parses a value from text. Unlike with serde's `try_from`, an error is reported at the position of the text, even if
/// it is the last field of its object.
///
/// # Errors
///
/// It is not text, or cannot be parsed.
pub fn deserialize_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(TextVisitor { expected, parse })
}

struct TextVisitor<T> {
    expected: &'static str,
    parse: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_reported_right_behind_the_text() {
        #[derive(Debug, serde::Deserialize)]
        struct Outer {
            #[serde(deserialize_with = "even")]
            _number: u32,
        }
        fn even<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
            deserialize_text(deserializer, "an even number", |text| {
                text.parse().ok().filter(|number| number % 2 == 0).ok_or_else(|| "must be even".to_owned())
            })
        }
        let error = |json: &str| serde_json::from_str::<Outer>(json).unwrap_err().to_string();
        assert_eq!(error(r#"{"_number": "3"}"#), "must be even at line 1 column 15");
        assert!(error(r#"{"_number": 3}"#).contains("expected an even number"));
        assert!(serde_json::from_str::<Outer>(r#"{"_number": "4"}"#).is_ok());
    }
}
