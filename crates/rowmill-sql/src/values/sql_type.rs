//! DuckDB's types of values.

use std::fmt;

/// The type of a column or an expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// The type of `NULL`, which is compatible with every other.
    Null,
    /// Booleans.
    Boolean,
    /// 8-bit integers.
    TinyInt,
    /// 16-bit integers.
    SmallInt,
    /// 32-bit integers.
    Integer,
    /// 64-bit integers.
    BigInt,
    /// 128-bit integers.
    HugeInt,
    /// Unsigned 8-bit integers.
    UTinyInt,
    /// Unsigned 16-bit integers.
    USmallInt,
    /// Unsigned 32-bit integers.
    UInteger,
    /// Unsigned 64-bit integers.
    UBigInt,
    /// 32-bit floating-point numbers.
    Float,
    /// 64-bit floating-point numbers.
    Double,
    /// Decimal numbers: total digits, and digits after the point.
    Decimal(u8, u8),
    /// Text.
    Varchar,
    /// Bytes.
    Blob,
    /// Dates.
    Date,
    /// Times of day, in microseconds.
    Time,
    /// Timestamps, in microseconds.
    Timestamp,
    /// Timestamps with a time zone, in microseconds.
    TimestampTz,
    /// Intervals: months, days and microseconds.
    Interval,
    /// JSON text.
    Json,
    /// Lists with elements of one type.
    List(Box<Self>),
    /// Structs, whose fields have names and types.
    Struct(Vec<(String, Self)>),
    /// A type whose values are only passed on, with its name.
    Other(&'static str),
}

/// Names of types that DuckDB accepts. The first name of a type is the one that is shown.
const NAMES: &[(&str, SqlType)] = &[
    ("BOOLEAN", SqlType::Boolean),
    ("BOOL", SqlType::Boolean),
    ("LOGICAL", SqlType::Boolean),
    ("TINYINT", SqlType::TinyInt),
    ("INT1", SqlType::TinyInt),
    ("SMALLINT", SqlType::SmallInt),
    ("INT2", SqlType::SmallInt),
    ("SHORT", SqlType::SmallInt),
    ("INTEGER", SqlType::Integer),
    ("INT", SqlType::Integer),
    ("INT4", SqlType::Integer),
    ("SIGNED", SqlType::Integer),
    ("BIGINT", SqlType::BigInt),
    ("INT8", SqlType::BigInt),
    ("LONG", SqlType::BigInt),
    ("HUGEINT", SqlType::HugeInt),
    ("INT128", SqlType::HugeInt),
    ("UTINYINT", SqlType::UTinyInt),
    ("USMALLINT", SqlType::USmallInt),
    ("UINTEGER", SqlType::UInteger),
    ("UBIGINT", SqlType::UBigInt),
    ("FLOAT", SqlType::Float),
    ("FLOAT4", SqlType::Float),
    ("REAL", SqlType::Float),
    ("DOUBLE", SqlType::Double),
    ("FLOAT8", SqlType::Double),
    ("DOUBLE PRECISION", SqlType::Double),
    ("DECIMAL", SqlType::Decimal(18, 3)),
    ("NUMERIC", SqlType::Decimal(18, 3)),
    ("VARCHAR", SqlType::Varchar),
    ("TEXT", SqlType::Varchar),
    ("STRING", SqlType::Varchar),
    ("CHAR", SqlType::Varchar),
    ("BPCHAR", SqlType::Varchar),
    ("BLOB", SqlType::Blob),
    ("BYTEA", SqlType::Blob),
    ("DATE", SqlType::Date),
    ("TIME", SqlType::Time),
    ("TIMESTAMP", SqlType::Timestamp),
    ("DATETIME", SqlType::Timestamp),
    ("TIMESTAMPTZ", SqlType::TimestampTz),
    ("TIMESTAMP WITH TIME ZONE", SqlType::TimestampTz),
    ("INTERVAL", SqlType::Interval),
    ("JSON", SqlType::Json),
];

impl SqlType {
    /// Parses the name of a type: `INTEGER`, `text`, `DECIMAL(10,2)`, `BIGINT[]`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim();
        if let Some(item) = name.strip_suffix("[]") {
            return Some(Self::List(Box::new(Self::from_name(item)?)));
        }
        if let Some((word, rest)) = name.split_once('(') {
            if word.trim().eq_ignore_ascii_case("STRUCT") {
                return struct_named(rest.strip_suffix(')')?);
            }
            let is_decimal = matches!(word.trim().to_ascii_uppercase().as_str(), "DECIMAL" | "NUMERIC");
            let sizes = rest.strip_suffix(')').filter(|_| is_decimal)?;
            let (digits, scale) = sizes.split_once(',').unwrap_or((sizes, "0"));
            return Self::decimal(digits.trim().parse().ok()?, scale.trim().parse().ok()?);
        }
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, found)| found.clone())
    }

    /// The type for a name that an input declares, which may be a type whose values are only passed on.
    #[must_use]
    pub fn from_declared_name(name: &str) -> Self {
        const OTHERS: [&str; 5] = ["UUID", "MAP", "BLOB", "INTERVAL", "DECIMAL"];
        let other = OTHERS.iter().find(|other| name.trim_start_matches("OTHER ") == **other);
        match (other, name.strip_suffix("[]"), name.strip_prefix("STRUCT(")) {
            (Some(other), ..) => Self::Other(other),
            (_, Some(item), _) => Self::List(Box::new(Self::from_declared_name(item))),
            (_, _, Some(fields)) => {
                let parts = fields.strip_suffix(')').and_then(struct_parts);
                let fields = parts.unwrap_or_default().into_iter();
                Self::Struct(fields.map(|(name, kind)| (name, Self::from_declared_name(kind))).collect())
            }
            _ if name == "NULL" => Self::Null,
            _ => Self::from_name(name).unwrap_or(Self::Other("OTHER")),
        }
    }

    /// A decimal type, if these sizes are valid.
    pub(crate) fn decimal(digits: u64, scale: i64) -> Option<Self> {
        let (digits, scale) = (u8::try_from(digits).ok()?, u8::try_from(scale).ok()?);
        ((1..=38).contains(&digits) && scale <= digits).then_some(Self::Decimal(digits, scale))
    }

    /// The minimum and maximum value of an integer type.
    pub(crate) fn whole_range(&self) -> Option<(i128, i128)> {
        Some(match self {
            Self::TinyInt => (i8::MIN.into(), i8::MAX.into()),
            Self::SmallInt => (i16::MIN.into(), i16::MAX.into()),
            Self::Integer => (i32::MIN.into(), i32::MAX.into()),
            Self::BigInt => (i64::MIN.into(), i64::MAX.into()),
            Self::HugeInt => (i128::MIN, i128::MAX),
            Self::UTinyInt => (0, u8::MAX.into()),
            Self::USmallInt => (0, u16::MAX.into()),
            Self::UInteger => (0, u32::MAX.into()),
            Self::UBigInt => (0, u64::MAX.into()),
            _ => return None,
        })
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.whole_range().is_some()
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    pub(crate) fn is_number(&self) -> bool {
        self.is_whole() || self.is_real() || matches!(self, Self::Decimal(..))
    }

    /// Whether it is a date or a timestamp.
    pub(crate) fn is_date_or_timestamp(&self) -> bool {
        matches!(self, Self::Date | Self::Timestamp)
    }

    pub(crate) fn is_nested(&self) -> bool {
        matches!(self, Self::List(_) | Self::Struct(_))
    }

    /// The total digits and the digits after the point of its values as decimal numbers.
    pub(crate) fn decimal_size(&self) -> Option<(u8, u8)> {
        Some(match self {
            Self::Decimal(digits, scale) => (*digits, *scale),
            Self::TinyInt | Self::UTinyInt => (3, 0),
            Self::SmallInt | Self::USmallInt => (5, 0),
            Self::Integer | Self::UInteger => (10, 0),
            Self::BigInt => (19, 0),
            Self::UBigInt => (20, 0),
            Self::HugeInt => (38, 0),
            _ => return None,
        })
    }

    /// Whether SQLite can compare, sort and group its encoded values.
    pub(crate) fn is_ordered(&self) -> bool {
        match self {
            Self::Interval | Self::Other(_) => false,
            Self::List(item) => item.is_ordered(),
            Self::Struct(fields) => fields.iter().all(|(_, field)| field.is_ordered()),
            _ => true,
        }
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("\"NULL\""),
            Self::Decimal(digits, scale) => write!(out, "DECIMAL({digits},{scale})"),
            Self::Other(name) => out.write_str(name),
            Self::TimestampTz => out.write_str("TIMESTAMP WITH TIME ZONE"),
            Self::List(item) => write!(out, "{item}[]"),
            Self::Struct(fields) => {
                out.write_str("STRUCT(")?;
                for (at, (name, field)) in fields.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    if is_plain_name(name) {
                        write!(out, "{comma}{name} {field}")?;
                    } else {
                        write!(out, "{comma}\"{}\" {field}", name.replace('"', "\"\""))?;
                    }
                }
                out.write_str(")")
            }
            plain => {
                let known = NAMES.iter().find(|(_, known)| known == plain);
                out.write_str(known.map_or("?", |(name, _)| name))
            }
        }
    }
}

/// The type of structs with these fields: `a BIGINT, "b c" VARCHAR[]`.
fn struct_named(fields: &str) -> Option<SqlType> {
    let parts = struct_parts(fields)?.into_iter();
    let fields = parts.map(|(name, kind)| Some((name, SqlType::from_name(kind)?)));
    Some(SqlType::Struct(fields.collect::<Option<_>>()?))
}

/// The fields of a struct: their names, and the names of their types.
fn struct_parts(fields: &str) -> Option<Vec<(String, &str)>> {
    let mut parts = Vec::new();
    let mut rest = fields.trim();
    while !rest.is_empty() {
        let name = if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted_end(quoted)?;
            let name = quoted.get(..end)?.replace("\"\"", "\"");
            rest = quoted.get(end + 1..)?;
            name
        } else {
            let (name, behind) = rest.split_once(' ')?;
            rest = behind;
            name.to_owned()
        };
        let end = type_end(rest);
        parts.push((name, rest.get(..end)?.trim()));
        rest = rest.get(end + 1..).unwrap_or_default().trim();
    }
    Some(parts)
}

/// The end of a quoted name; a doubled quote is an escaped one.
fn quoted_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'"', Some(b'"')) => at += 2,
            (b'"', _) => return Some(at),
            _ => at += 1,
        }
    }
}

/// The end of a type's name: at a comma outside brackets and quotes.
fn type_end(text: &str) -> usize {
    let (mut depth, mut is_quoted) = (0_usize, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth = depth.saturating_sub(1),
            ',' if !is_quoted && depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn is_plain_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_known_by_the_name_that_it_is_shown_with() {
        for (_, known) in NAMES {
            assert_eq!(SqlType::from_name(&known.to_string()), Some(known.clone()), "{known}");
        }
        for (name, expected) in [
            ("text", Some(SqlType::Varchar)),
            ("decimal(10, 2)", Some(SqlType::Decimal(10, 2))),
            ("NUMERIC(5)", Some(SqlType::Decimal(5, 0))),
            ("bigint[]", Some(SqlType::List(Box::new(SqlType::BigInt)))),
            ("DECIMAL(39,2)", None),
            ("DECIMAL(3,4)", None),
            (
                "STRUCT(a bigint, \"b, c\" DECIMAL(3,1)[])",
                Some(SqlType::Struct(vec![
                    ("a".into(), SqlType::BigInt),
                    ("b, c".into(), SqlType::List(Box::new(SqlType::Decimal(3, 1)))),
                ])),
            ),
            ("varchar(3)", None),
            ("colour", None),
        ] {
            assert_eq!(SqlType::from_name(name), expected, "{name}");
        }
    }
}
