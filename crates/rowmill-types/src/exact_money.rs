//! Exact amounts in settings: a round trip preserves every picodollar.
//!
//! Users write numbers of dollars, which are exact for all practical amounts. Amounts that no JSON number can represent
//! are written as text with all their digits.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Money;

/// The number of picodollar digits after the point.
const DIGITS: usize = 12;

/// Serializes an amount, for `#[serde(with = "exact_money")]`.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<S: Serializer>(amount: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
    amount.map(ExactMoney).serialize(serializer)
}

/// Deserializes an amount, for `#[serde(with = "exact_money")]`.
///
/// # Errors
///
/// It is not an amount of dollars.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Money>, D::Error> {
    Ok(Option::<ExactMoney>::deserialize(deserializer)?.map(|ExactMoney(amount)| amount))
}

/// An amount as written in settings: a number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactMoney(Money);

impl Serialize for ExactMoney {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dollars = self.0.dollars();
        if Money::from_dollars(dollars) == Some(self.0) {
            return serializer.serialize_f64(dollars);
        }
        let pico = format!("{:0>width$}", self.0.pico(), width = DIGITS + 1);
        let (whole, fraction) = pico.split_at(pico.len() - DIGITS);
        serializer.collect_str(&format_args!("{whole}.{fraction}"))
    }
}

impl<'de> Deserialize<'de> for ExactMoney {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MoneyVisitor)
    }
}

struct MoneyVisitor;

impl Visitor<'_> for MoneyVisitor {
    type Value = ExactMoney;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an amount in dollars such as `5` or `0.25`")
    }

    fn visit_f64<E: Error>(self, dollars: f64) -> Result<ExactMoney, E> {
        let wrong = || E::custom("must be a non-negative amount in dollars");
        Money::from_dollars(dollars).map(ExactMoney).ok_or_else(wrong)
    }

    fn visit_u64<E: Error>(self, dollars: u64) -> Result<ExactMoney, E> {
        self.visit_f64(dollars as f64)
    }

    fn visit_i64<E: Error>(self, dollars: i64) -> Result<ExactMoney, E> {
        self.visit_f64(dollars as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ExactMoney, E> {
        let wrong = || E::custom("must be an amount in dollars such as `5` or `0.25`");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction:0<DIGITS$}");
        let is_amount = !whole.is_empty() && fraction.len() <= DIGITS;
        let is_amount = is_amount && digits.bytes().all(|digit| digit.is_ascii_digit());
        let pico = digits.parse().ok().filter(|_| is_amount).ok_or_else(wrong)?;
        Ok(ExactMoney(Money::from_pico(pico)))
    }
}

impl JsonSchema for ExactMoney {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,12})?$"},
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_numbers_as_far_as_numbers_can_say_them() {
        let written = |pico| serde_json::to_string(&ExactMoney(Money::from_pico(pico))).unwrap();
        assert_eq!(written(250_000_000_000), "0.25");
        assert_eq!(written(5_000_000_000_000), "5.0");
        assert_eq!(written(u64::MAX), "\"18446744.073709551615\"");
        for wrong in ["-1", "\"five\"", "\"-1\"", "\"\"", "\"1.0000000000001\"", "true", "1e300"] {
            assert!(serde_json::from_str::<ExactMoney>(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_amount_is_read_back_as_it_was(pico: u64) {
            let amount = ExactMoney(Money::from_pico(pico));
            let json = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(serde_json::from_str::<ExactMoney>(&json).unwrap(), amount);
        }
    }
}
