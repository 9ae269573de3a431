//! What a query reads: tables, their columns and their values.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::sync::Arc;

use rowmill_types::Problem;
pub use rowmill_types::{Comparison, Scalar};

/// Something that can be read row by row, as often as a query wants to.
pub trait Table: Send + Sync + Debug {
    /// Its columns. Names differ, also when upper and lower case are not told apart.
    fn columns(&self) -> &[Column];

    /// Begins to read it.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn scan(&self, wanted: &Wanted) -> Result<Box<dyn Scan>, Problem>;
}

/// A read of a table. It stands before the first row at the beginning.
pub trait Scan {
    /// Goes to the next row; `false` once there is none.
    ///
    /// # Errors
    ///
    /// The table cannot be read any further.
    fn advance(&mut self) -> Result<bool, Problem>;

    /// The value of a column in the row that it stands on. Only columns that were wanted are
    /// asked for.
    fn value(&self, column: usize) -> Value<'_>;

    /// The number of the row that it stands on: what SQL calls `rowid`.
    fn number(&self) -> u64;
}

/// A table with the name that queries call it by.
#[derive(Debug, Clone)]
pub struct NamedTable {
    /// The name.
    pub name: &'static str,
    /// The table.
    pub table: Arc<dyn Table>,
}

/// What a scan has to give. More is never wrong: SQLite looks again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// The columns that are asked for, in order.
    pub columns: Vec<usize>,
    /// Rows that break one of these may be left out.
    pub conditions: Vec<Condition>,
}

/// A comparison of a column with a value. Null satisfies none.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The column.
    pub column: usize,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what.
    pub value: Scalar,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
}

/// What the values of a column are. It is declared to SQLite, and found again in results
/// that are nothing but a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers of 64 bits.
    Integer,
    /// Whole numbers, some of which do not fit into 64 bits and are given as text.
    Wide,
    /// Other numbers.
    Real,
    /// Decimal numbers with this many digits in all and after the point.
    Decimal(u8, i8),
    /// `true` and `false`, given as 1 and 0.
    Boolean,
    /// Lists and objects, given as JSON text.
    Nested,
    /// Anything.
    Mixed,
}

/// The most digits that a decimal number may have to be exact as a number of SQLite.
const EXACT_DIGITS: u8 = 15;

impl Kind {
    /// Whether its values are numbers for SQLite.
    #[must_use]
    pub fn is_number(self) -> bool {
        match self {
            Self::Integer | Self::Real => true,
            Self::Decimal(digits, _) => digits <= EXACT_DIGITS,
            Self::Text | Self::Wide | Self::Boolean | Self::Nested | Self::Mixed => false,
        }
    }

    /// The kind that a declared type stands for.
    pub(crate) fn declared(text: &str) -> Option<Self> {
        let plain =
            [Self::Text, Self::Integer, Self::Wide, Self::Real, Self::Boolean, Self::Nested, Self::Mixed];
        if let Some(found) = plain.into_iter().find(|kind| kind.to_string() == text) {
            return Some(found);
        }
        let (_, sizes) = text.split_once("DECIMAL(")?;
        let (digits, scale) = sizes.strip_suffix(')')?.split_once(',')?;
        Some(Self::Decimal(digits.parse().ok()?, scale.parse().ok()?))
    }
}

/// The declared type. SQLite reads from it how values are compared: by the words `INT`,
/// `TEXT`, `REAL` and `BLOB` inside of it.
impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => out.write_str("TEXT"),
            Self::Integer => out.write_str("INTEGER"),
            Self::Wide => out.write_str("WIDE_BLOB"),
            Self::Real => out.write_str("REAL"),
            Self::Decimal(digits, scale) if self.is_number() => {
                write!(out, "REAL_DECIMAL({digits},{scale})")
            }
            Self::Decimal(digits, scale) => write!(out, "TEXT_DECIMAL({digits},{scale})"),
            Self::Boolean => out.write_str("BOOLEAN"),
            Self::Nested => out.write_str("JSONTEXT"),
            Self::Mixed => out.write_str("MIXED_BLOB"),
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'r> {
    /// None.
    Null,
    /// A whole number, or 1 and 0 for `true` and `false`.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Text, or the JSON text of a list or an object.
    Text(Cow<'r, str>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_stands_for_the_kind_that_made_it() {
        for kind in [
            Kind::Text,
            Kind::Integer,
            Kind::Wide,
            Kind::Real,
            Kind::Decimal(10, 2),
            Kind::Decimal(38, -3),
            Kind::Boolean,
            Kind::Nested,
            Kind::Mixed,
        ] {
            assert_eq!(Kind::declared(&kind.to_string()), Some(kind), "{kind}");
        }
        assert_eq!(Kind::declared(""), None);
        assert_eq!(Kind::declared("VARCHAR(3)"), None);
    }
}
