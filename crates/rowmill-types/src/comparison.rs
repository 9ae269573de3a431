//! Comparisons that readers can evaluate themselves to filter rows early.

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// Equal.
    Equal,
    /// Less.
    Less,
    /// Less or equal.
    AtMost,
    /// Greater.
    Greater,
    /// Greater or equal.
    AtLeast,
}

/// A value that columns are compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum ComparisonValue {
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
}
