use std::sync::Arc;

use arrow_array::{
    BinaryViewArray, Date32Array, Float32Array, Float64Array, Int64Array, TimestampMicrosecondArray,
    UInt64Array,
};
use rowmill_core::ports::ComparisonOperator::{AtLeast, AtMost, Equal, Greater, Less};

use super::*;

fn kept(
    shape: &ValueShape,
    array: ArrayRef,
    comparison: ComparisonOperator,
    value: ComparisonValue,
) -> Vec<usize> {
    let test = ColumnTest { comparison, value };
    assert!(test.applies_to(shape));
    let mask = test.check(shape, &array).unwrap();
    mask.iter().enumerate().filter(|(_, kept)| *kept == Some(true)).map(|(at, _)| at).collect()
}

#[test]
fn numbers_are_compared_without_loss() {
    let big = 1i64 << 53;
    let integers = || Arc::new(Int64Array::from(vec![Some(-3), None, Some(big), Some(big + 1)])) as ArrayRef;
    for (comparison, value, expected) in [
        (Equal, ComparisonValue::Integer(big + 1), vec![3]),
        (Equal, ComparisonValue::Real(big as f64), vec![2]),
        (Greater, ComparisonValue::Real(big as f64), vec![3]),
        (Less, ComparisonValue::Real(-2.5), vec![0]),
        (AtMost, ComparisonValue::Real(-3.0), vec![0]),
        (AtMost, ComparisonValue::Real(-3.5), vec![]),
        (Less, ComparisonValue::Real(1e300), vec![0, 2, 3]),
        (AtLeast, ComparisonValue::Real(-1e300), vec![0, 2, 3]),
    ] {
        assert_eq!(kept(&ValueShape::Integer, integers(), comparison, value.clone()), expected, "{value:?}");
    }
    let large = Arc::new(UInt64Array::from(vec![u64::MAX, 5])) as ArrayRef;
    assert_eq!(kept(&ValueShape::Integer, large, Greater, ComparisonValue::Integer(5)), [0]);
    let reals = || Arc::new(Float64Array::from(vec![0.5, f64::NAN, f64::INFINITY, -1.0])) as ArrayRef;
    assert_eq!(
        kept(&ValueShape::Real, reals(), AtLeast, ComparisonValue::Integer(0)),
        [0],
        "NaN and infinity are null"
    );
    assert_eq!(kept(&ValueShape::Real, reals(), Less, ComparisonValue::Real(0.5)), [3]);
}

#[test]
fn a_short_float_is_kept_where_its_text_may_satisfy_the_condition() {
    let floats = || Arc::new(Float32Array::from(vec![0.1, 0.2])) as ArrayRef;
    for comparison in [Equal, AtMost, AtLeast] {
        assert!(kept(&ValueShape::Real, floats(), comparison, ComparisonValue::Real(0.1)).contains(&0));
    }
    assert_eq!(kept(&ValueShape::Real, floats(), Greater, ComparisonValue::Real(0.15)), [1]);
}

#[test]
fn texts_dates_and_timestamps_are_compared_as_rows_show_them() {
    let texts = Arc::new(BinaryViewArray::from(vec![b"eval".as_slice(), b"train", b"\xff"])) as ArrayRef;
    assert_eq!(kept(&ValueShape::Text, texts, Equal, ComparisonValue::Text("eval".into())), [0, 2]);
    let days = || Arc::new(Date32Array::from(vec![Some(19_843), Some(19_844), None])) as ArrayRef;
    for (comparison, text, expected) in [
        (Equal, "2024-05-01", vec![1]),
        (AtLeast, "2024-05", vec![1]),
        (Less, "2024-05-01", vec![0]),
        (Greater, "2025", vec![]),
    ] {
        assert_eq!(
            kept(&ValueShape::Date, days(), comparison, ComparisonValue::Text(text.into())),
            expected,
            "{text}"
        );
    }
    let moments = Arc::new(TimestampMicrosecondArray::from(vec![1_714_557_600_000_000])) as ArrayRef;
    let shape = ValueShape::Timestamp { utc: false };
    assert_eq!(kept(&shape, moments, Equal, ComparisonValue::Text("2024-05-01T10:00:00".into())), [0]);
}

#[test]
fn what_cannot_be_compared_is_reported_to_be_so() {
    for (shape, value) in [
        (ValueShape::Text, ComparisonValue::Integer(1)),
        (ValueShape::Integer, ComparisonValue::Text("1".into())),
        (ValueShape::Decimal(10, 2), ComparisonValue::Real(1.0)),
        (ValueShape::Real, ComparisonValue::Real(f64::NAN)),
        (ValueShape::List(Box::new(ValueShape::Text)), ComparisonValue::Text("[]".into())),
    ] {
        assert!(!ColumnTest { comparison: Equal, value }.applies_to(&shape));
    }
}
