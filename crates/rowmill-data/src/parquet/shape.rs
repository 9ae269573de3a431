//! The types of the values of a column, independent of how a file stores them.

use std::fmt;

use rowmill_core::ports::ColumnKind;

/// The type of the values of a column.
///
/// Widths, units and encodings are not visible in rows, so they are not part of it: files that differ only in
/// these form one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueShape {
    /// Nothing but nulls.
    Null,
    Boolean,
    Integer,
    Real,
    Decimal(u8, i8),
    Text,
    Bytes,
    Uuid,
    Date,
    Time,
    Timestamp {
        utc: bool,
    },
    Duration,
    Interval,
    List(Box<Self>),
    Struct(Vec<(String, Self)>),
    Map(Box<Self>, Box<Self>),
}

impl ValueShape {
    /// Its type as shown to users and to SQL.
    pub(super) fn kind(&self) -> ColumnKind {
        match self {
            Self::Null => ColumnKind::Mixed,
            Self::Boolean => ColumnKind::Boolean,
            Self::Integer => ColumnKind::Integer,
            Self::Real => ColumnKind::Real,
            Self::Decimal(precision, scale) => ColumnKind::Decimal(*precision, *scale),
            Self::Text | Self::Bytes | Self::Uuid => ColumnKind::Text,
            Self::Date | Self::Time | Self::Timestamp { .. } => ColumnKind::Text,
            Self::Duration | Self::Interval => ColumnKind::Text,
            Self::List(_) | Self::Struct(_) | Self::Map(..) => ColumnKind::Nested,
        }
    }

    /// Whether its values can be written as field names.
    pub(super) fn names_fields(&self) -> bool {
        !matches!(self, Self::Null | Self::List(_) | Self::Struct(_) | Self::Map(..))
    }

    /// A type for the values of both; `None` if they are incompatible.
    pub(super) fn joined(&self, other: &Self) -> Option<Self> {
        Some(match (self, other) {
            (one, other) if one == other => one.clone(),
            (Self::Null, other) => other.clone(),
            (one, Self::Null) => one.clone(),
            (Self::Integer | Self::Real, Self::Integer | Self::Real) => Self::Real,
            (Self::Decimal(one, scale), Self::Decimal(other, same)) if scale == same => {
                Self::Decimal(*one.max(other), *scale)
            }
            (Self::List(one), Self::List(other)) => Self::List(Box::new(one.joined(other)?)),
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                Self::Map(Box::new(key.joined(other_key)?), Box::new(value.joined(other_value)?))
            }
            (Self::Struct(one), Self::Struct(other)) => Self::Struct(joined_fields(one, other)?),
            _ => return None,
        })
    }
}

fn joined_fields(
    one: &[(String, ValueShape)],
    other: &[(String, ValueShape)],
) -> Option<Vec<(String, ValueShape)>> {
    let mut joined = one.to_vec();
    for (name, shape) in other {
        match joined.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = known.joined(shape)?,
            None => joined.push((name.clone(), shape.clone())),
        }
    }
    Some(joined)
}

impl fmt::Display for ValueShape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Boolean => out.write_str("boolean"),
            Self::Integer => out.write_str("integer"),
            Self::Real => out.write_str("real"),
            Self::Decimal(precision, scale) => write!(out, "decimal({precision}, {scale})"),
            Self::Text => out.write_str("text"),
            Self::Bytes => out.write_str("bytes"),
            Self::Uuid => out.write_str("uuid"),
            Self::Date => out.write_str("date"),
            Self::Time => out.write_str("time"),
            Self::Timestamp { utc: false } => out.write_str("timestamp"),
            Self::Timestamp { utc: true } => out.write_str("timestamp in UTC"),
            Self::Duration => out.write_str("duration"),
            Self::Interval => out.write_str("interval"),
            Self::List(item) => write!(out, "list of {item}"),
            Self::Map(key, value) => write!(out, "map of {key} to {value}"),
            Self::Struct(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, shape)| format!("{name}: {shape}")).collect();
                write!(out, "struct {{{}}}", fields.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(fields: &[(&str, ValueShape)]) -> ValueShape {
        ValueShape::Struct(fields.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone())).collect())
    }

    #[test]
    fn shapes_are_joined_where_rows_cannot_tell_or_numbers_widen() {
        let list = |shape| ValueShape::List(Box::new(shape));
        let one = object(&[("a", ValueShape::Integer), ("b", ValueShape::Text)]);
        let other = object(&[("c", ValueShape::Date), ("a", ValueShape::Real)]);
        let both = object(&[("a", ValueShape::Real), ("b", ValueShape::Text), ("c", ValueShape::Date)]);
        for (one, other, joined) in [
            (ValueShape::Text, ValueShape::Text, Some(ValueShape::Text)),
            (ValueShape::Null, ValueShape::Date, Some(ValueShape::Date)),
            (ValueShape::Date, ValueShape::Null, Some(ValueShape::Date)),
            (ValueShape::Integer, ValueShape::Real, Some(ValueShape::Real)),
            (ValueShape::Decimal(10, 2), ValueShape::Decimal(12, 2), Some(ValueShape::Decimal(12, 2))),
            (ValueShape::Decimal(10, 2), ValueShape::Decimal(10, 3), None),
            (ValueShape::Text, ValueShape::Integer, None),
            (ValueShape::Timestamp { utc: true }, ValueShape::Timestamp { utc: false }, None),
            (list(ValueShape::Integer), list(ValueShape::Real), Some(list(ValueShape::Real))),
            (list(ValueShape::Integer), ValueShape::Integer, None),
            (one.clone(), other, Some(both)),
            (one, object(&[("b", ValueShape::Date)]), None),
        ] {
            assert_eq!(one.joined(&other), joined, "{one} with {other}");
        }
    }
}
