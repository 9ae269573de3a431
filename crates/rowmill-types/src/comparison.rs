//! Comparisons that readers can make before anybody else sees a row.

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The same.
    Equal,
    /// Less.
    Less,
    /// Less, or the same.
    AtMost,
    /// More.
    Greater,
    /// More, or the same.
    AtLeast,
}

/// A value that columns are compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
}
