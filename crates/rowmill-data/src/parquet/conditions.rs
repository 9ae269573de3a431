//! Leaves out rows that do not satisfy a condition, where that is cheap to determine.
//!
//! Values are compared in the form that they have in rows: dates and timestamps as their text, booleans as 0
//! or 1. The caller checks again, so rows are kept in case of doubt.

use std::cmp::Ordering;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array as _, ArrayRef, BooleanArray};
use arrow_schema::{DataType, TimeUnit};
use rowmill_core::ports::{ComparisonOperator, ComparisonValue};

use super::civil::{write_date, write_timestamp};
use super::shape::ValueShape;
use crate::PartitionField;

/// A comparison with a value.
#[derive(Debug, Clone)]
pub(super) struct ColumnTest {
    pub(super) comparison: ComparisonOperator,
    pub(super) value: ComparisonValue,
}

impl ColumnTest {
    /// Whether columns of this type can be compared with the value here.
    pub(super) fn applies_to(&self, shape: &ValueShape) -> bool {
        match (&self.value, shape) {
            (_, ValueShape::Null) => true,
            (ComparisonValue::Real(value), _) if value.is_nan() => false,
            (
                ComparisonValue::Integer(_) | ComparisonValue::Real(_),
                ValueShape::Boolean | ValueShape::Integer | ValueShape::Real,
            ) => true,
            (
                ComparisonValue::Text(_),
                ValueShape::Text | ValueShape::Date | ValueShape::Timestamp { .. },
            ) => true,
            _ => false,
        }
    }

    /// Which values satisfy it; null stays null. `None` if they cannot be compared.
    pub(super) fn check(&self, shape: &ValueShape, array: &ArrayRef) -> Option<BooleanArray> {
        match shape {
            ValueShape::Null => Some(BooleanArray::new_null(array.len())),
            ValueShape::Boolean => {
                let values = array.as_boolean_opt()?;
                Some(BooleanArray::from_unary(values, |value| self.holds_integer(i128::from(value))))
            }
            ValueShape::Integer => self.check_integers(array),
            ValueShape::Real => self.check_reals(array),
            ValueShape::Text => {
                let ComparisonValue::Text(text) = &self.value else { return None };
                let values = array.as_binary_view_opt()?;
                // A value that is not text makes a bad row, which must not be dropped.
                Some(BooleanArray::from_unary(values, |value| {
                    self.holds(value.cmp(text.as_bytes())) || std::str::from_utf8(value).is_err()
                }))
            }
            ValueShape::Date => match array.data_type() {
                DataType::Date32 => self.check_shown::<Date32Type>(array, write_date),
                _ => self.check_shown::<Date64Type>(array, |value, out| {
                    write_date(value.div_euclid(86_400_000), out);
                }),
            },
            ValueShape::Timestamp { utc } => self.check_timestamps(array, *utc),
            _ => None,
        }
    }

    /// Whether the value in the folder names satisfies it.
    pub(super) fn holds_for(&self, field: &PartitionField) -> bool {
        let mask = self.check(&field.shape(), &field.array());
        mask.is_none_or(|mask| mask.is_valid(0) && mask.value(0))
    }

    fn holds(&self, ordering: Ordering) -> bool {
        match self.comparison {
            ComparisonOperator::Equal => ordering.is_eq(),
            ComparisonOperator::Less => ordering.is_lt(),
            ComparisonOperator::AtMost => ordering.is_le(),
            ComparisonOperator::Greater => ordering.is_gt(),
            ComparisonOperator::AtLeast => ordering.is_ge(),
        }
    }

    fn holds_integer(&self, value: i128) -> bool {
        match &self.value {
            ComparisonValue::Integer(other) => self.holds(value.cmp(&i128::from(*other))),
            // Beyond signed 64 bits, not everything treats numbers as integers.
            _ if value > i128::from(i64::MAX) => true,
            ComparisonValue::Real(other) => self.holds(against_real(value, *other)),
            ComparisonValue::Text(_) => true,
        }
    }

    fn holds_real(&self, value: f64) -> bool {
        match &self.value {
            ComparisonValue::Integer(other) => self.holds(against_real(i128::from(*other), value).reverse()),
            ComparisonValue::Real(other) => {
                value.partial_cmp(other).is_none_or(|ordering| self.holds(ordering))
            }
            ComparisonValue::Text(_) => true,
        }
    }

    fn check_integers(&self, array: &ArrayRef) -> Option<BooleanArray> {
        fn of<T: ArrowPrimitiveType<Native: Into<i128>>>(
            test: &ColumnTest,
            array: &ArrayRef,
        ) -> Option<BooleanArray> {
            let values = array.as_primitive_opt::<T>()?;
            Some(BooleanArray::from_unary(values, |value| test.holds_integer(value.into())))
        }
        match array.data_type() {
            DataType::Int8 => of::<Int8Type>(self, array),
            DataType::Int16 => of::<Int16Type>(self, array),
            DataType::Int32 => of::<Int32Type>(self, array),
            DataType::Int64 => of::<Int64Type>(self, array),
            DataType::UInt8 => of::<UInt8Type>(self, array),
            DataType::UInt16 => of::<UInt16Type>(self, array),
            DataType::UInt32 => of::<UInt32Type>(self, array),
            _ => of::<UInt64Type>(self, array),
        }
    }

    fn check_reals(&self, array: &ArrayRef) -> Option<BooleanArray> {
        match array.data_type() {
            // NaN and infinity are null in rows.
            DataType::Float64 => {
                let values = array.as_primitive_opt::<Float64Type>()?;
                Some(BooleanArray::from_unary(values, |value| value.is_finite() && self.holds_real(value)))
            }
            // A short float is written as the shortest text that identifies it: 0.1 and not 0.10000000149.
            DataType::Float32 => {
                let values = array.as_primitive_opt::<Float32Type>()?;
                Some(BooleanArray::from_unary(values, |value| {
                    value.is_finite() && (self.is_near(value) || self.holds_real(f64::from(value)))
                }))
            }
            _ => None,
        }
    }

    /// Whether the value to compare with is adjacent to a short float.
    fn is_near(&self, value: f32) -> bool {
        let (low, high) = (f64::from(value.next_down()), f64::from(value.next_up()));
        match &self.value {
            ComparisonValue::Real(other) => (low..=high).contains(other),
            ComparisonValue::Integer(other) => {
                against_real(i128::from(*other), low).is_ge()
                    && against_real(i128::from(*other), high).is_le()
            }
            ComparisonValue::Text(_) => true,
        }
    }

    fn check_timestamps(&self, array: &ArrayRef, utc: bool) -> Option<BooleanArray> {
        let DataType::Timestamp(unit, _) = *array.data_type() else { return None };
        let write = move |value, out: &mut Vec<u8>| write_timestamp(value, unit, utc, out);
        match unit {
            TimeUnit::Second => self.check_shown::<TimestampSecondType>(array, write),
            TimeUnit::Millisecond => self.check_shown::<TimestampMillisecondType>(array, write),
            TimeUnit::Microsecond => self.check_shown::<TimestampMicrosecondType>(array, write),
            TimeUnit::Nanosecond => self.check_shown::<TimestampNanosecondType>(array, write),
        }
    }

    /// Compares values by the text that represents them in rows.
    fn check_shown<T: ArrowPrimitiveType<Native: Into<i64>>>(
        &self,
        array: &ArrayRef,
        write: impl Fn(i64, &mut Vec<u8>),
    ) -> Option<BooleanArray> {
        let ComparisonValue::Text(text) = &self.value else { return None };
        let values = array.as_primitive_opt::<T>()?;
        let mut shown = Vec::new();
        Some(BooleanArray::from_unary(values, |value| {
            shown.clear();
            write(value.into(), &mut shown);
            // Years with other than four digits have a sign, and their text is not in order.
            let has_sign = matches!(shown.first(), Some(b'+' | b'-'));
            has_sign || self.holds(shown.as_slice().cmp(text.as_bytes()))
        }))
    }
}

/// Compares without loss; NaN is greater than everything.
fn against_real(integer: i128, real: f64) -> Ordering {
    const BEYOND: f64 = 1.0e38;
    if real.is_nan() || real > BEYOND {
        return Ordering::Less;
    }
    if real < -BEYOND {
        return Ordering::Greater;
    }
    // In this range the integral part is exact as an integer.
    let whole = real.trunc();
    let fraction = real - whole;
    integer.cmp(&(whole as i128)).then(0.0f64.partial_cmp(&fraction).unwrap_or(Ordering::Equal))
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
