//! Numeric functions.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::catalog::{BoundFunction, FunctionCall};
use super::fixed_types::FixedTypeFunction;
use crate::expression::refusal::BindResult;
use crate::expression::typed::{EvaluatedArguments, ExpressionNode, FunctionNode, NullRule, TypedExpression};
use crate::values::datum::Datum;
use crate::values::sql_type::SqlType::{self, Boolean, Double};

pub(super) const PLAIN: &[FixedTypeFunction] = &[
    FixedTypeFunction {
        names: &["sqrt"],
        parameters: &[Double],
        result: Double,
        compute: |a| number(real(a, 0).sqrt()),
    },
    FixedTypeFunction {
        names: &["cbrt"],
        parameters: &[Double],
        result: Double,
        compute: |a| number(real(a, 0).cbrt()),
    },
    FixedTypeFunction {
        names: &["exp"],
        parameters: &[Double],
        result: Double,
        compute: |a| number(real(a, 0).exp()),
    },
    FixedTypeFunction {
        names: &["ln"],
        parameters: &[Double],
        result: Double,
        compute: |a| number(real(a, 0).ln()),
    },
    FixedTypeFunction {
        names: &["log10", "log"],
        parameters: &[Double],
        result: Double,
        compute: |a| number(real(a, 0).log10()),
    },
    FixedTypeFunction {
        names: &["log"],
        parameters: &[Double, Double],
        result: Double,
        compute: |a| number(real(a, 1).ln() / real(a, 0).ln()),
    },
    FixedTypeFunction {
        names: &["log2"],
        parameters: &[Double],
        result: Double,
        compute: |a| number(real(a, 0).log2()),
    },
    FixedTypeFunction {
        names: &["power", "pow"],
        parameters: &[Double, Double],
        result: Double,
        compute: |a| number(real(a, 0).powf(real(a, 1))),
    },
    FixedTypeFunction {
        names: &["pi"],
        parameters: &[],
        result: Double,
        compute: |_| number(std::f64::consts::PI),
    },
    FixedTypeFunction {
        names: &["isnan"],
        parameters: &[Double],
        result: Boolean,
        compute: |a| Ok(Datum::Boolean(real(a, 0).is_nan())),
    },
    FixedTypeFunction {
        names: &["isinf"],
        parameters: &[Double],
        result: Boolean,
        compute: |a| Ok(Datum::Boolean(real(a, 0).is_infinite())),
    },
    FixedTypeFunction {
        names: &["isfinite"],
        parameters: &[Double],
        result: Boolean,
        compute: |a| Ok(Datum::Boolean(real(a, 0).is_finite())),
    },
];

pub(super) const FUNCTIONS: &[BoundFunction] = &[
    BoundFunction { names: &["abs"], bind: abs },
    BoundFunction { names: &["sign"], bind: sign },
    BoundFunction { names: &["random"], bind: random },
];

/// An argument that is a floating-point number.
fn real(arguments: EvaluatedArguments<'_, '_>, at: usize) -> f64 {
    arguments.get(at).and_then(|datum| datum.as_real()).unwrap_or(f64::NAN)
}

fn number(number: f64) -> Result<Datum, String> {
    Ok(Datum::Real(number))
}

/// The only argument of a numeric function.
pub(super) fn single_number(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [argument] = call.exact_arguments()?;
    if argument.kind.is_number() || argument.kind == SqlType::Null {
        return Ok(argument);
    }
    Err(call.wrong_types("it takes a number; write `CAST(x AS DOUBLE)`"))
}

fn abs(call: &FunctionCall) -> BindResult<TypedExpression> {
    let argument = single_number(call)?;
    let kind = argument.kind.clone();
    let range = kind.whole_range();
    let absolute = move |arguments: EvaluatedArguments<'_, '_>| match arguments.first().map(|datum| &**datum)
    {
        Some(Datum::Real(number)) => Ok(Datum::Real(number.abs())),
        Some(Datum::Decimal(number)) => Ok(Datum::Decimal(number.abs())),
        Some(Datum::Whole(number)) => match (number.checked_abs(), range) {
            (Some(positive), Some((_, greatest))) if positive <= greatest => Ok(Datum::Whole(positive)),
            _ => Err(format!("`abs({number})` is too large for its type")),
        },
        _ => Ok(Datum::Null),
    };
    Ok(TypedExpression::call(absolute, vec![argument], kind, call.place))
}

fn sign(call: &FunctionCall) -> BindResult<TypedExpression> {
    let argument = single_number(call)?;
    let sign = |arguments: EvaluatedArguments<'_, '_>| {
        Ok(Datum::Whole(match arguments.first().map(|datum| &**datum) {
            Some(Datum::Whole(number) | Datum::Decimal(number)) => number.signum(),
            Some(Datum::Real(number)) if *number > 0.0 => 1,
            Some(Datum::Real(number)) if *number < 0.0 => -1,
            _ => 0,
        }))
    };
    Ok(TypedExpression::call(sign, vec![argument], SqlType::TinyInt, call.place))
}

/// A random number from 0 to below 1, different for every row.
fn random(call: &FunctionCall) -> BindResult<TypedExpression> {
    let [] = call.exact_arguments()?;
    let state = AtomicU64::new(RandomState::new().hash_one(0));
    let computation = Arc::new(move |_: EvaluatedArguments<'_, '_>| {
        let seed = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(Datum::Real(((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64))
    });
    let call_node =
        FunctionNode { computation, arguments: Vec::new(), nulls: NullRule::GiveNull, is_repeatable: false };
    Ok(TypedExpression { node: ExpressionNode::Call(call_node), kind: Double, place: call.place })
}
