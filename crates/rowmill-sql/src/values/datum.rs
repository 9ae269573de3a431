//! A value, and the order of values of one type.

use std::cmp::Ordering;

use super::interval::SqlInterval;

/// A value whose type determines its interpretation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Datum {
    Null,
    Boolean(bool),
    /// Any integer.
    Whole(i128),
    /// Any floating-point number.
    Real(f64),
    /// A decimal number without its point; the type has the scale.
    Decimal(i128),
    /// Text, and JSON text.
    Text(String),
    Bytes(Vec<u8>),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970, with or without a time zone.
    Timestamp(i64),
    Interval(SqlInterval),
    List(Vec<Self>),
    /// The fields of a struct, in the order of its type.
    Struct(Vec<Self>),
}

impl Datum {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_whole(&self) -> Option<i128> {
        if let Self::Whole(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn as_real(&self) -> Option<f64> {
        if let Self::Real(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn as_boolean(&self) -> Option<bool> {
        if let Self::Boolean(truth) = self { Some(*truth) } else { None }
    }

    /// The order of two values of the same type: `NaN` is the greatest number, and a null inside a list or
    /// struct is greater than all values.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Greater,
            (_, Self::Null) => Ordering::Less,
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            (Self::Whole(left), Self::Whole(right)) | (Self::Decimal(left), Self::Decimal(right)) => {
                left.cmp(right)
            }
            (Self::Real(left), Self::Real(right)) => order_of_reals(*left, *right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Bytes(left), Self::Bytes(right)) => left.cmp(right),
            (Self::Date(left), Self::Date(right)) => left.cmp(right),
            (Self::Time(left), Self::Time(right)) | (Self::Timestamp(left), Self::Timestamp(right)) => {
                left.cmp(right)
            }
            (Self::Interval(left), Self::Interval(right)) => left.normalized().cmp(&right.normalized()),
            (Self::List(left), Self::List(right)) | (Self::Struct(left), Self::Struct(right)) => {
                let parts = left.iter().zip(right);
                let found = parts.map(|(left, right)| left.order(right)).find(|order| order.is_ne());
                found.unwrap_or_else(|| left.len().cmp(&right.len()))
            }
            _ => Ordering::Equal,
        }
    }
}

/// The order of numbers, in which `NaN` is the greatest and equal to itself.
pub(crate) fn order_of_reals(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}
