//! Literals.

use sqlparser::ast::{Value, ValueWithSpan};

use crate::expression::refusal::{BindResult, QueryPosition, QueryRefusal};
use crate::expression::typed::{ExpressionNode, TypedExpression};
use crate::values::datum::Datum;
use crate::values::number_text::{parse_decimal, parse_real};
use crate::values::sql_type::SqlType;

/// The type of an integer literal.
pub(crate) fn whole_kind(number: i128) -> SqlType {
    if i32::try_from(number).is_ok() {
        SqlType::Integer
    } else if i64::try_from(number).is_ok() {
        SqlType::BigInt
    } else {
        SqlType::HugeInt
    }
}

/// Binds a literal.
pub(super) fn bind_literal(value: &ValueWithSpan) -> BindResult<TypedExpression> {
    let place = QueryPosition::from(value.span);
    let typed = |node, kind| Ok(TypedExpression { node, kind, place });
    match &value.value {
        Value::Null => typed(ExpressionNode::Literal(Datum::Null), SqlType::Null),
        Value::Boolean(truth) => typed(ExpressionNode::Constant(Datum::Boolean(*truth)), SqlType::Boolean),
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
            typed(ExpressionNode::Literal(Datum::Text(text.clone())), SqlType::Varchar)
        }
        Value::DollarQuotedString(text) => {
            typed(ExpressionNode::Literal(Datum::Text(text.value.clone())), SqlType::Varchar)
        }
        Value::Number(text, _) => number(text, place),
        other => Err(QueryRefusal::new(format!("`{other}` is not supported"), place)),
    }
}

fn number(text: &str, place: QueryPosition) -> BindResult<TypedExpression> {
    let plain = text.replace('_', "");
    let wrong = || QueryRefusal::new(format!("`{text}` is not a number"), place);
    if let Ok(whole) = plain.parse::<i128>() {
        return Ok(TypedExpression {
            node: ExpressionNode::Literal(Datum::Whole(whole)),
            kind: whole_kind(whole),
            place,
        });
    }
    let real = || parse_real(&plain).ok_or_else(wrong);
    if plain.contains(['e', 'E']) || !plain.contains('.') {
        return Ok(TypedExpression::constant(Datum::Real(real()?), SqlType::Double, place));
    }
    let digits = plain.bytes().filter(u8::is_ascii_digit).count();
    let scale = plain.split('.').nth(1).map_or(0, str::len);
    let size = u8::try_from(digits).ok().zip(u8::try_from(scale).ok()).filter(|(digits, _)| *digits <= 38);
    let decimal =
        size.and_then(|(digits, scale)| Some((parse_decimal(&plain, digits, scale)?, digits, scale)));
    Ok(match decimal {
        Some((number, digits, scale)) => {
            TypedExpression::constant(Datum::Decimal(number), SqlType::Decimal(digits, scale), place)
        }
        None => TypedExpression::constant(Datum::Real(real()?), SqlType::Double, place),
    })
}
