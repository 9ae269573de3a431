//! Rounding.

use super::catalog::{BoundFunction, FunctionCall};
use super::numbers::single_number;
use crate::expression::coerce::cast_to;
use crate::expression::refusal::{BindResult, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::cast::CastMode;
use crate::values::datum::Datum;
use crate::values::decimal::{divide_rounded, power_of_ten};
use crate::values::sql_type::SqlType;

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction { names: &["round"], bind: round },
    BoundFunction {
        names: &["floor"],
        bind: |call| cut(call, TruncateRule { real: f64::floor, decimal: i128::div_euclid }),
    },
    BoundFunction {
        names: &["ceil", "ceiling"],
        bind: |call| cut(call, TruncateRule { real: f64::ceil, decimal: divide_up }),
    },
    BoundFunction { names: &["trunc"], bind: trunc },
];

/// How a fraction is removed.
#[derive(Clone, Copy)]
struct TruncateRule {
    real: fn(f64) -> f64,
    decimal: fn(i128, i128) -> i128,
}

fn divide_up(number: i128, by: i128) -> i128 {
    -(-number).div_euclid(by)
}

fn cut(call: &FunctionCall, cut: TruncateRule) -> BindResult<TypedExpression> {
    let argument = single_number(call)?;
    let (argument, kind) = match argument.kind {
        SqlType::Decimal(digits, _) => (argument, SqlType::Decimal(digits, 0)),
        SqlType::Float | SqlType::Double => {
            let kind = argument.kind.clone();
            (argument, kind)
        }
        _ => (cast_to(argument, &SqlType::Double, CastMode::Fail)?, SqlType::Double),
    };
    let unit = power_of_ten(u32::from(argument.kind.decimal_size().map_or(0, |(_, scale)| scale)));
    let computed = move |arguments: EvaluatedArguments<'_, '_>| {
        Ok(match arguments.first().map(|datum| &**datum) {
            Some(Datum::Real(number)) => Datum::Real((cut.real)(*number)),
            Some(Datum::Decimal(number)) => Datum::Decimal((cut.decimal)(*number, unit)),
            _ => Datum::Null,
        })
    };
    Ok(TypedExpression::call(computed, vec![argument], kind, call.place))
}

fn trunc(call: &FunctionCall) -> BindResult<TypedExpression> {
    let argument = single_number(call)?;
    if argument.kind.is_whole() {
        return Ok(argument);
    }
    cut(call, TruncateRule { real: f64::trunc, decimal: |number, by| number / by })
}

fn round(call: &FunctionCall) -> BindResult<TypedExpression> {
    let (argument, digits) = match call.arguments.as_slice() {
        [_] => (single_number(call)?, 0),
        [number, digits] => {
            let known =
                digits.known_value().and_then(Datum::as_whole).and_then(|digits| i32::try_from(digits).ok());
            let digits = known.ok_or_else(|| {
                QueryRefusal::new("the number of digits must be a number in the query", digits.place)
            })?;
            (single_number(&FunctionCall { arguments: vec![number.clone()], ..call.clone() })?, digits)
        }
        _ => return Err(call.wrong_count("1 or 2")),
    };
    let kind = argument.kind.clone();
    match kind {
        SqlType::Float | SqlType::Double => {
            let is_float = kind == SqlType::Float;
            let rounded = move |arguments: EvaluatedArguments<'_, '_>| {
                let number = arguments.first().and_then(|datum| datum.as_real()).unwrap_or(f64::NAN);
                let rounded = round_real(number, digits);
                Ok(Datum::Real(if is_float { f64::from(rounded as f32) } else { rounded }))
            };
            Ok(TypedExpression::call(rounded, vec![argument], kind, call.place))
        }
        SqlType::Decimal(width, scale) => {
            if digits >= i32::from(scale) {
                return Ok(argument);
            }
            let kept = u8::try_from(digits.max(0)).unwrap_or(0);
            let kind = SqlType::Decimal(width, kept);
            let rounded = move |arguments: EvaluatedArguments<'_, '_>| {
                let Some(Datum::Decimal(number)) = arguments.first().map(|datum| &**datum) else {
                    return Ok(Datum::Null);
                };
                Ok(Datum::Decimal(round_decimal(*number, scale, digits)))
            };
            Ok(TypedExpression::call(rounded, vec![argument], kind, call.place))
        }
        _ => round_whole(call, argument, digits),
    }
}

/// Unsigned numbers become signed, as in DuckDB, and a result that does not fit is an error.
fn round_whole(call: &FunctionCall, argument: TypedExpression, digits: i32) -> BindResult<TypedExpression> {
    let kind = match argument.kind {
        SqlType::UTinyInt | SqlType::USmallInt | SqlType::UInteger => SqlType::BigInt,
        SqlType::UBigInt => SqlType::HugeInt,
        ref kind => kind.clone(),
    };
    let argument = cast_to(argument, &kind, CastMode::Fail)?;
    if digits >= 0 {
        return Ok(argument);
    }
    let (least, greatest) = kind.whole_range().unwrap_or((i128::MIN, i128::MAX));
    let name = kind.to_string();
    let rounded = move |arguments: EvaluatedArguments<'_, '_>| {
        let number = arguments.first().and_then(|datum| datum.as_whole()).unwrap_or_default();
        let rounded = round_decimal(number, 0, digits);
        match (least..=greatest).contains(&rounded) {
            true => Ok(Datum::Whole(rounded)),
            false => Err(format!("{number}, rounded, does not fit into {name}")),
        }
    };
    Ok(TypedExpression::call(rounded, vec![argument], kind, call.place))
}

fn round_real(number: f64, digits: i32) -> f64 {
    if digits == 0 {
        return number.round();
    }
    let factor = 10_f64.powi(digits.abs());
    let rounded =
        if digits > 0 { (number * factor).round() / factor } else { (number / factor).round() * factor };
    // A number with fewer digits than are removed is zero, even if there is no such power of ten.
    let vanishes = digits < 0 && factor.is_infinite() && number.is_finite();
    match (rounded.is_finite(), vanishes) {
        (true, _) => rounded,
        (false, true) => 0.0,
        (false, false) => number,
    }
}

/// A decimal number with `digits` digits after the point; if negative, zeros before it.
fn round_decimal(number: i128, scale: u8, digits: i32) -> i128 {
    let cut = u32::try_from(i32::from(scale) - digits).unwrap_or(0);
    if cut > 38 {
        return 0;
    }
    let rounded = divide_rounded(number, power_of_ten(cut));
    let zeros = u32::try_from(-digits).unwrap_or(0);
    rounded * power_of_ten(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_digits_on_both_sides_of_the_point() {
        assert_eq!(round_decimal(12_345, 1, -2), 1200);
        assert_eq!(round_decimal(1005, 3, 2), 101);
        assert_eq!(round_decimal(25, 1, 0), 3);
        assert_eq!(round_decimal(-25, 1, 0), -3);
        assert_eq!(round_decimal(1250, 0, -2), 1300);
        assert!((round_real(12_345.678, -2) - 12_300.0).abs() < f64::EPSILON);
        assert!((round_real(1.005, 2) - 1.0).abs() < f64::EPSILON);
        for (number, digits, expected) in [
            (f64::INFINITY, -1, f64::INFINITY),
            (f64::NEG_INFINITY, -400, f64::NEG_INFINITY),
            (f64::INFINITY, 1, f64::INFINITY),
            (1.7e308, -308, 1.7e308),
            (1e308, -400, 0.0),
            (-7.5, 400, -7.5),
        ] {
            assert_eq!(round_real(number, digits), expected, "{number} {digits}");
        }
        assert!(round_real(f64::NAN, -1).is_nan());
        assert_eq!(divide_up(25, 10), 3);
        assert_eq!(divide_up(-25, 10), -2);
    }
}
