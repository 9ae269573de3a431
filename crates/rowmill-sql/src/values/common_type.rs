//! The common type of values of two types.

use super::sql_type::SqlType;

/// The maximum digits of a decimal number.
const MOST_DIGITS: u8 = 38;

/// The type in which two values are compared, or that both branches of a `CASE` have; `None` if an explicit
/// cast is necessary.
pub(crate) fn common_type(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    if left == right {
        return Some(left.clone());
    }
    Some(match (left, right) {
        (SqlType::Null, other) | (other, SqlType::Null) => other.clone(),
        (SqlType::Date, SqlType::Timestamp) | (SqlType::Timestamp, SqlType::Date) => SqlType::Timestamp,
        (SqlType::List(left), SqlType::List(right)) => SqlType::List(Box::new(common_type(left, right)?)),
        (SqlType::Struct(left), SqlType::Struct(right)) => {
            let is_same =
                left.len() == right.len() && left.iter().zip(right).all(|(one, other)| one.0 == other.0);
            let fields = left.iter().zip(right).filter(|_| is_same);
            let fields: Option<Vec<_>> = fields
                .map(|((name, left), (_, right))| Some((name.clone(), common_type(left, right)?)))
                .collect();
            SqlType::Struct(fields.filter(|_| is_same)?)
        }
        (left, right) if left.is_number() && right.is_number() => common_number(left, right)?,
        _ => return None,
    })
}

/// The common type of two numbers.
pub(crate) fn common_number(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    if *left == SqlType::Double || *right == SqlType::Double {
        return Some(SqlType::Double);
    }
    if *left == SqlType::Float || *right == SqlType::Float {
        return Some(SqlType::Float);
    }
    if left.is_whole() && right.is_whole() {
        return common_whole(left, right);
    }
    let ((left_digits, left_scale), (right_digits, right_scale)) =
        (left.decimal_size()?, right.decimal_size()?);
    let scale = left_scale.max(right_scale);
    let whole = (left_digits - left_scale).max(right_digits - right_scale);
    // Two decimals that do not fit together lose digits after the point; with an integer, they keep them.
    let are_decimals = !left.is_whole() && !right.is_whole();
    let scale = if are_decimals { scale.min(MOST_DIGITS - whole) } else { scale };
    Some(SqlType::Decimal((whole + scale).min(MOST_DIGITS), scale))
}

/// The decimal type in which two numbers are compared: it keeps all digits after the point, and numbers that
/// then do not fit are errors.
pub(crate) fn compared_decimal(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    let ((left_digits, left_scale), (right_digits, right_scale)) =
        (left.decimal_size()?, right.decimal_size()?);
    let scale = left_scale.max(right_scale);
    let whole = (left_digits - left_scale).max(right_digits - right_scale);
    Some(SqlType::Decimal((whole + scale).min(MOST_DIGITS), scale))
}

/// The smallest integer type for the values of both.
fn common_whole(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    let (left_range, right_range) = (left.whole_range()?, right.whole_range()?);
    let holds = |kind: &&SqlType| {
        kind.whole_range().is_some_and(|(least, greatest)| {
            least <= left_range.0.min(right_range.0) && greatest >= left_range.1.max(right_range.1)
        })
    };
    let kinds = [
        SqlType::TinyInt,
        SqlType::UTinyInt,
        SqlType::SmallInt,
        SqlType::USmallInt,
        SqlType::Integer,
        SqlType::UInteger,
        SqlType::BigInt,
        SqlType::UBigInt,
        SqlType::HugeInt,
    ];
    kinds.iter().find(holds).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_meet_where_they_do_in_duckdb() {
        use SqlType::{
            BigInt, Date, Decimal, Double, Float, HugeInt, Integer, Timestamp, UBigInt, UTinyInt, Varchar,
        };
        for (left, right, expected) in [
            (Integer, Decimal(2, 1), Some(Decimal(11, 1))),
            (BigInt, Decimal(2, 1), Some(Decimal(20, 1))),
            (HugeInt, Decimal(2, 1), Some(Decimal(38, 1))),
            (Decimal(10, 2), Double, Some(Double)),
            (Decimal(10, 2), Decimal(38, 0), Some(Decimal(38, 0))),
            (Decimal(10, 2), Decimal(37, 0), Some(Decimal(38, 1))),
            (Decimal(10, 2), Decimal(5, 4), Some(Decimal(12, 4))),
            (Float, Decimal(2, 1), Some(Float)),
            (Float, BigInt, Some(Float)),
            (UBigInt, BigInt, Some(HugeInt)),
            (UTinyInt, SqlType::TinyInt, Some(SqlType::SmallInt)),
            (Date, Timestamp, Some(Timestamp)),
            (Varchar, BigInt, None),
            (Date, BigInt, None),
            (SqlType::Null, Date, Some(Date)),
        ] {
            assert_eq!(common_type(&left, &right), expected, "{left} {right}");
            assert_eq!(common_type(&right, &left), expected, "{right} {left}");
        }
    }
}
