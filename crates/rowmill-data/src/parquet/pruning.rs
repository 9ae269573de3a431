//! Row groups that cannot hold a row of use, told by their statistics.

use arrow_array::{Array as _, BooleanArray};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::Type as Physical;
use parquet::errors::Result;
use rowmill_core::ports::Comparison;

use super::conditions::Test;
use super::file::Check;
use super::layout::Layout;
use super::problems::guarded;
use super::shape::Shape;

/// Whether each row group may hold rows that satisfy all conditions.
pub(super) fn groups_of_use(metadata: &ArrowReaderMetadata, layout: &Layout, checks: &[Check]) -> Vec<bool> {
    let mut of_use = vec![true; metadata.metadata().num_row_groups()];
    for check in checks {
        // Statistics are a help and no more: without them all groups are read.
        if let Ok(Some(may_hold)) = guarded(|| check_statistics(metadata, layout, check)) {
            for (of_use, may_hold) in of_use.iter_mut().zip(may_hold) {
                *of_use &= may_hold;
            }
        }
    }
    of_use
}

fn check_statistics(
    metadata: &ArrowReaderMetadata,
    layout: &Layout,
    check: &Check,
) -> Result<Option<Vec<bool>>> {
    let Some(leaf) = layout.leaf(check.column) else { return Ok(None) };
    let stored = metadata.parquet_schema();
    // Writers disagree on the order of these.
    if stored.column(leaf).physical_type() == Physical::INT96 {
        return Ok(None);
    }
    let groups = metadata.metadata().row_groups();
    let field = layout.decoded.field(check.column);
    let converter = StatisticsConverter::from_column_index(leaf, field, stored)?;
    let least = converter.row_group_mins(groups)?;
    let most = converter.row_group_maxes(groups)?;
    let test = |comparison, bounds| {
        let test = Test { comparison, value: check.test.value.clone() };
        test.check(&check.shape, bounds)
    };
    let (low, high) = match check.test.comparison {
        Comparison::Equal => (test(Comparison::AtMost, &least), test(Comparison::AtLeast, &most)),
        below @ (Comparison::Less | Comparison::AtMost) => (test(below, &least), None),
        above @ (Comparison::Greater | Comparison::AtLeast) => (None, test(above, &most)),
    };
    let ordered = |at: usize| {
        let statistics = groups.get(at).and_then(|group| group.column(leaf).statistics());
        statistics.is_some_and(|statistics| !statistics.is_min_max_deprecated())
            && in_order(&check.shape, &least, at)
            && in_order(&check.shape, &most, at)
    };
    let may =
        |mask: &Option<BooleanArray>, at| mask.as_ref().is_none_or(|mask| mask.is_null(at) || mask.value(at));
    Ok(Some((0..groups.len()).map(|at| !ordered(at) || may(&low, at) && may(&high, at)).collect()))
}

/// Whether a bound stands in an order that its text keeps: years of other than four digits
/// do not.
fn in_order(shape: &Shape, bounds: &arrow_array::ArrayRef, at: usize) -> bool {
    if !matches!(shape, Shape::Date | Shape::Timestamp { .. }) {
        return true;
    }
    let within = |comparison, text: &str| {
        let test = Test { comparison, value: rowmill_core::ports::Scalar::Text(text.to_owned()) };
        test.check(shape, bounds).is_some_and(|mask| mask.is_valid(at) && mask.value(at))
    };
    within(Comparison::AtLeast, "0") && within(Comparison::Less, "a")
}
