//! `+`, `-`, `*`, `/`, `//`, `%`, `^` and `||`.

use super::dates::{add_days, day_difference, scaled_interval, shift_by_interval, timestamp_difference};
use crate::expression::coerce::{can_adapt, cast_to, common_argument_type, fold_constant};
use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{EvaluatedArguments, TypedExpression};
use crate::values::cast::CastMode;
use crate::values::common_type::common_number;
use crate::values::datum::Datum;
use crate::values::decimal::fits_digits;
use crate::values::sql_type::SqlType;

/// An arithmetic operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    /// The result always has a fraction.
    Divide,
    /// Division of integers, without a fraction.
    DivideWhole,
    Remainder,
    Power,
}

impl ArithmeticOperator {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::DivideWhole => "//",
            Self::Remainder => "%",
            Self::Power => "^",
        }
    }
}

/// An operation on two values.
pub(crate) fn bind_arithmetic(
    operation: ArithmeticOperator,
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    if let Some(moment) = with_moments(operation, &left, &right, place) {
        return moment.and_then(fold_constant);
    }
    let is_number = |typed: &TypedExpression| typed.kind.is_number() || typed.kind == SqlType::Null;
    if !is_number(&left) || !is_number(&right) {
        return Err(wrong_operands(operation, &left, &right, place).with_column_notes(&[&left, &right]));
    }
    let typed = match operation {
        ArithmeticOperator::Divide | ArithmeticOperator::Power => reals(operation, left, right, place)?,
        ArithmeticOperator::DivideWhole if !(left.kind.is_whole() && right.kind.is_whole()) => {
            reals(operation, left, right, place)?
        }
        _ => numbers(operation, left, right, place)?,
    };
    fold_constant(typed)
}

fn wrong_operands(
    operation: ArithmeticOperator,
    left: &TypedExpression,
    right: &TypedExpression,
    place: QueryPosition,
) -> QueryRefusal {
    let sign = operation.sign();
    let refusal = QueryRefusal::new(format!("there is no `{} {sign} {}`", left.kind, right.kind), place);
    let kinds = [&left.kind, &right.kind];
    if kinds.contains(&&SqlType::Varchar) && operation == ArithmeticOperator::Add {
        return refusal.hint("use `a || b` to join text, or `CAST(x AS DOUBLE)` to convert it to a number");
    }
    if kinds.contains(&&SqlType::Varchar) || kinds.contains(&&SqlType::Json) {
        return refusal.hint("write `CAST(x AS DOUBLE)`, or `TRY_CAST` if not every value is a number");
    }
    if kinds.iter().any(|kind| kind.is_date_or_timestamp()) && !kinds.contains(&&SqlType::TimestampTz) {
        return refusal.hint("use `d + INTERVAL 3 DAY` to shift a date or a time");
    }
    if kinds.contains(&&SqlType::TimestampTz) {
        return refusal.hint("write `x AT TIME ZONE 'UTC'` for the times with a time zone");
    }
    refusal.hint("it works with numbers: cast other values")
}

/// Division and powers, whose result is a floating-point number for all arguments.
fn reals(
    operation: ArithmeticOperator,
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let is_float = operation != ArithmeticOperator::Power
        && common_number(&left.kind, &right.kind) == Some(SqlType::Float);
    let kind = if is_float { SqlType::Float } else { SqlType::Double };
    let left = cast_to(left, &kind, CastMode::Fail)?;
    let right = cast_to(right, &kind, CastMode::Fail)?;
    let computed = move |arguments: EvaluatedArguments<'_, '_>| {
        let (left, right) = two_reals(arguments);
        let result = match operation {
            ArithmeticOperator::Power => left.powf(right),
            ArithmeticOperator::DivideWhole if right == 0.0 => {
                return Err(format!("{left} {} 0 divides by zero", operation.sign()));
            }
            _ => left / right,
        };
        Ok(Datum::Real(if is_float { f64::from(result as f32) } else { result }))
    };
    Ok(TypedExpression::call(computed, vec![left, right], kind, place))
}

fn two_reals(arguments: EvaluatedArguments<'_, '_>) -> (f64, f64) {
    let real = |at: usize| arguments.get(at).and_then(|datum| datum.as_real()).unwrap_or(f64::NAN);
    (real(0), real(1))
}

fn numbers(
    operation: ArithmeticOperator,
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let kind = common_argument_type(&[&left, &right], "an operation")?;
    match kind {
        SqlType::Float | SqlType::Double => {
            let left = cast_to(left, &kind, CastMode::Fail)?;
            let right = cast_to(right, &kind, CastMode::Fail)?;
            let is_float = kind == SqlType::Float;
            let computed = move |arguments: EvaluatedArguments<'_, '_>| {
                let (left, right) = two_reals(arguments);
                let result = match operation {
                    ArithmeticOperator::Add => left + right,
                    ArithmeticOperator::Subtract => left - right,
                    ArithmeticOperator::Multiply => left * right,
                    _ => left % right,
                };
                Ok(Datum::Real(if is_float { f64::from(result as f32) } else { result }))
            };
            Ok(TypedExpression::call(computed, vec![left, right], kind, place))
        }
        SqlType::Decimal(..) => decimals(operation, left, right, place),
        SqlType::Null => cast_to(left, &SqlType::Integer, CastMode::Fail),
        _ => {
            let left = cast_to(left, &kind, CastMode::Fail)?;
            let right = cast_to(right, &kind, CastMode::Fail)?;
            Ok(TypedExpression::call(wholes(operation, &kind), vec![left, right], kind, place))
        }
    }
}

fn wholes(
    operation: ArithmeticOperator,
    kind: &SqlType,
) -> impl Fn(EvaluatedArguments<'_, '_>) -> Result<Datum, String> + use<> {
    let (least, greatest) = kind.whole_range().unwrap_or((i128::MIN, i128::MAX));
    let name = kind.to_string();
    move |arguments| {
        let number = |at: usize| arguments.get(at).and_then(|datum| datum.as_whole()).unwrap_or_default();
        let (left, right) = (number(0), number(1));
        let result = match operation {
            ArithmeticOperator::Add => left.checked_add(right),
            ArithmeticOperator::Subtract => left.checked_sub(right),
            ArithmeticOperator::Multiply => left.checked_mul(right),
            _ if right == 0 => return Err(format!("{left} {} 0 divides by zero", operation.sign())),
            ArithmeticOperator::Remainder => left.checked_rem(right),
            _ => left.checked_div(right),
        };
        match result.filter(|result| *result >= least && *result <= greatest) {
            Some(result) => Ok(Datum::Whole(result)),
            None => Err(format!("{left} {} {right} does not fit into {name}", operation.sign())),
        }
    }
}

/// The maximum digits of a decimal number that fits into 64 bits.
const SHORT: u8 = 18;
const MOST: u8 = 38;

fn decimals(
    operation: ArithmeticOperator,
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    let sizes = left.kind.decimal_size().zip(right.kind.decimal_size());
    let Some(((left_digits, left_scale), (right_digits, right_scale))) = sizes else {
        return Err(wrong_operands(operation, &left, &right, place));
    };
    let widest = left_digits.max(right_digits);
    if operation == ArithmeticOperator::Multiply {
        let scale = left_scale + right_scale;
        if scale > MOST {
            return Err(QueryRefusal::new(
                "the product would have more than 38 digits after the decimal point",
                place,
            )
            .hint("write `CAST(x AS DOUBLE)`, or round the factors"));
        }
        let digits = left_digits + right_digits;
        let is_short = digits > SHORT && widest <= SHORT && scale < SHORT;
        let digits = if is_short { SHORT } else { digits.min(MOST) };
        let left = cast_to(left, &SqlType::Decimal(left_digits, left_scale), CastMode::Fail)?;
        let right = cast_to(right, &SqlType::Decimal(right_digits, right_scale), CastMode::Fail)?;
        return Ok(decimal_call(operation, [left, right], SqlType::Decimal(digits, scale), place));
    }
    let scale = left_scale.max(right_scale);
    let whole = (left_digits - left_scale).max(right_digits - right_scale);
    if operation == ArithmeticOperator::Remainder && whole + scale > MOST {
        let left = cast_to(left, &SqlType::Double, CastMode::Fail)?;
        let right = cast_to(right, &SqlType::Double, CastMode::Fail)?;
        return numbers(operation, left, right, place);
    }
    let is_sum = matches!(operation, ArithmeticOperator::Add | ArithmeticOperator::Subtract);
    let digits = (whole + scale).max(widest) + u8::from(is_sum);
    let digits = if digits > SHORT && widest <= SHORT { SHORT } else { digits.min(MOST) };
    let kind = SqlType::Decimal(digits, scale);
    let left = cast_to(left, &kind, CastMode::Fail)?;
    let right = cast_to(right, &kind, CastMode::Fail)?;
    Ok(decimal_call(operation, [left, right], kind, place))
}

fn decimal_call(
    operation: ArithmeticOperator,
    operands: [TypedExpression; 2],
    kind: SqlType,
    place: QueryPosition,
) -> TypedExpression {
    let digits = kind.decimal_size().map_or(MOST, |(digits, _)| digits);
    let name = kind.to_string();
    let computed = move |arguments: EvaluatedArguments<'_, '_>| {
        let number = |at: usize| match arguments.get(at).map(|datum| &**datum) {
            Some(Datum::Decimal(number)) => *number,
            _ => 0,
        };
        let (left, right) = (number(0), number(1));
        let result = match operation {
            ArithmeticOperator::Add => left.checked_add(right),
            ArithmeticOperator::Subtract => left.checked_sub(right),
            ArithmeticOperator::Multiply => left.checked_mul(right),
            _ if right == 0 => return Err("division by zero".to_owned()),
            _ => left.checked_rem(right),
        };
        match result.filter(|result| fits_digits(*result, digits)) {
            Some(result) => Ok(Datum::Decimal(result)),
            None => Err(format!("the result of `{}` does not fit into {name}", operation.sign())),
        }
    };
    TypedExpression::call(computed, operands.into(), kind, place)
}

/// Operations with dates, times and intervals; `None` for numbers.
fn with_moments(
    operation: ArithmeticOperator,
    left: &TypedExpression,
    right: &TypedExpression,
    place: QueryPosition,
) -> Option<BindResult<TypedExpression>> {
    use SqlType as T;
    let (left, right) = (left.clone(), right.clone());
    let is_days = |typed: &TypedExpression| typed.kind.is_whole() && can_adapt(typed, &T::Integer);
    Some(match (operation, &left.kind, &right.kind) {
        (ArithmeticOperator::Add, T::Date, _) if is_days(&right) => add_days(left, right, 1, place),
        (ArithmeticOperator::Add, _, T::Date) if is_days(&left) => add_days(right, left, 1, place),
        (ArithmeticOperator::Subtract, T::Date, _) if is_days(&right) => add_days(left, right, -1, place),
        (ArithmeticOperator::Subtract, T::Date, T::Date) => day_difference(left, right, place),
        (ArithmeticOperator::Subtract, T::Date | T::Timestamp, T::Date | T::Timestamp) => {
            timestamp_difference(left, right, place)
        }
        (ArithmeticOperator::Add, T::Date | T::Timestamp | T::Interval, T::Interval) => {
            shift_by_interval(left, right, 1, place)
        }
        (ArithmeticOperator::Add, T::Interval, T::Date | T::Timestamp) => {
            shift_by_interval(right, left, 1, place)
        }
        (ArithmeticOperator::Subtract, T::Date | T::Timestamp | T::Interval, T::Interval) => {
            shift_by_interval(left, right, -1, place)
        }
        (ArithmeticOperator::Multiply, T::Interval, kind) if kind.is_whole() => {
            scaled_interval(left, right, place)
        }
        (ArithmeticOperator::Multiply, kind, T::Interval) if kind.is_whole() => {
            scaled_interval(right, left, place)
        }
        _ => return None,
    })
}

/// `-x`.
pub(crate) fn bind_negation(typed: TypedExpression, place: QueryPosition) -> BindResult<TypedExpression> {
    // The result is still a literal, so that `-5` takes the type that its context needs.
    if let (true, Some(Datum::Whole(number))) = (typed.is_literal(), typed.known_value()) {
        let datum = Datum::Whole(-number);
        let kind = crate::binder::literals::whole_kind(-number);
        return Ok(TypedExpression {
            node: crate::expression::typed::ExpressionNode::Literal(datum),
            kind,
            place,
        });
    }
    let kind = typed.kind.clone();
    if !(kind.is_number() || kind == SqlType::Interval || kind == SqlType::Null) {
        return Err(QueryRefusal::new(format!("there is no `-` for {kind}"), place));
    }
    let range = kind.whole_range();
    let computed = move |arguments: EvaluatedArguments<'_, '_>| match arguments.first().map(|datum| &**datum)
    {
        Some(Datum::Real(number)) => Ok(Datum::Real(-number)),
        Some(Datum::Decimal(number)) => Ok(Datum::Decimal(-number)),
        Some(Datum::Interval(interval)) => {
            interval.checked_neg().map(Datum::Interval).ok_or_else(|| "the interval is too long".to_owned())
        }
        Some(Datum::Whole(number)) => {
            let fits =
                |negated: &i128| range.is_some_and(|(least, most)| *negated >= least && *negated <= most);
            let negated = number.checked_neg().filter(fits);
            negated.map(Datum::Whole).ok_or_else(|| format!("-({number}) does not fit into its type"))
        }
        _ => Ok(Datum::Null),
    };
    fold_constant(TypedExpression::call(computed, vec![typed], kind, place))
}

/// `a || b`: text, or lists.
pub(crate) fn bind_concatenation(
    left: TypedExpression,
    right: TypedExpression,
    place: QueryPosition,
) -> BindResult<TypedExpression> {
    if matches!(left.kind, SqlType::List(_)) || matches!(right.kind, SqlType::List(_)) {
        return Err(
            QueryRefusal::new("lists cannot be joined with `||`", place).hint("write `list_concat(a, b)`")
        );
    }
    let left = cast_to(left, &SqlType::Varchar, CastMode::Fail)?;
    let right = cast_to(right, &SqlType::Varchar, CastMode::Fail)?;
    let joined = |arguments: EvaluatedArguments<'_, '_>| {
        Ok(Datum::Text(arguments.iter().filter_map(|datum| datum.as_text()).collect()))
    };
    fold_constant(TypedExpression::call(joined, vec![left, right], SqlType::Varchar, place))
}
