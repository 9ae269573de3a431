//! Excludes row groups and pages by the minimum and maximum of their values.

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array as _, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::Type as Physical;
use parquet::errors::Result;
use rowmill_core::ports::ComparisonOperator;

use super::conditions::ColumnTest;
use super::file::ColumnCheck;
use super::layout::ColumnLayout;
use super::problems::catch_decoder_panic;
use super::shape::ValueShape;

/// Whether each row group may contain rows that satisfy all conditions.
pub(super) fn matching_groups(
    metadata: &ArrowReaderMetadata,
    layout: &ColumnLayout,
    checks: &[ColumnCheck],
) -> Vec<bool> {
    let mut of_use = vec![true; metadata.metadata().num_row_groups()];
    for check in checks {
        // Statistics only help: without them all groups are read.
        if let Ok(Some(may_hold)) = catch_decoder_panic(|| check_statistics(metadata, layout, check)) {
            for (of_use, may_hold) in of_use.iter_mut().zip(may_hold) {
                *of_use &= may_hold;
            }
        }
    }
    of_use
}

/// The rows of a group whose pages may contain needed rows, if the file describes its pages and some can be
/// excluded.
pub(super) fn matching_rows(
    metadata: &ArrowReaderMetadata,
    layout: &ColumnLayout,
    checks: &[ColumnCheck],
    group: usize,
) -> Option<BooleanBuffer> {
    let mut of_use: Option<BooleanBuffer> = None;
    for check in checks {
        // As with groups, missing information only costs time.
        if let Ok(Some(rows)) = catch_decoder_panic(|| check_pages(metadata, layout, check, group)) {
            of_use = Some(of_use.map_or_else(|| rows.clone(), |others| &others & &rows));
        }
    }
    of_use.filter(|rows| rows.count_set_bits() < rows.len())
}

fn check_statistics(
    metadata: &ArrowReaderMetadata,
    layout: &ColumnLayout,
    check: &ColumnCheck,
) -> Result<Option<Vec<bool>>> {
    let Some((leaf, converter)) = converter(metadata, layout, check)? else { return Ok(None) };
    let groups = metadata.metadata().row_groups();
    let bounds = (converter.row_group_mins(groups)?, converter.row_group_maxes(groups)?);
    let mut may_hold = may_hold(check, &bounds);
    for (may_hold, group) in may_hold.iter_mut().zip(groups) {
        let statistics = group.column(leaf).statistics();
        *may_hold |= statistics.is_none_or(|statistics| statistics.is_min_max_deprecated());
    }
    Ok(Some(may_hold))
}

fn check_pages(
    metadata: &ArrowReaderMetadata,
    layout: &ColumnLayout,
    check: &ColumnCheck,
    group: usize,
) -> Result<Option<BooleanBuffer>> {
    let Some(index) = metadata.metadata().page_index() else { return Ok(None) };
    let Some((_, converter)) = converter(metadata, layout, check)? else { return Ok(None) };
    let groups = metadata.metadata().row_groups();
    let Some(counts) = converter.data_page_row_counts(&**index, groups, [&group])? else { return Ok(None) };
    let bounds =
        (converter.data_page_mins(&**index, [&group])?, converter.data_page_maxes(&**index, [&group])?);
    let may_hold = may_hold(check, &bounds);
    let rows = groups.get(group).map_or(0, |group| group.num_rows());
    let counted: u64 = counts.values().iter().fold(0, |sum, count| sum.saturating_add(*count));
    if counts.null_count() > 0 || counts.len() != may_hold.len() || u64::try_from(rows) != Ok(counted) {
        return Ok(None);
    }
    let mut of_use = BooleanBufferBuilder::new(0);
    for (count, may_hold) in counts.values().iter().zip(may_hold) {
        of_use.append_n(usize::try_from(*count).unwrap_or(usize::MAX), may_hold);
    }
    Ok(Some(of_use.finish()))
}

/// The reader of a column's bounds, with its leaf; `None` if they are not usable.
fn converter<'m>(
    metadata: &'m ArrowReaderMetadata,
    layout: &'m ColumnLayout,
    check: &ColumnCheck,
) -> Result<Option<(usize, StatisticsConverter<'m>)>> {
    let Some(leaf) = layout.leaf(check.column) else { return Ok(None) };
    let stored = metadata.parquet_schema();
    // Writers disagree on the order of these values.
    if stored.column(leaf).physical_type() == Physical::INT96 {
        return Ok(None);
    }
    let field = layout.decoded.field(check.column);
    Ok(Some((leaf, StatisticsConverter::from_column_index(leaf, field, stored)?)))
}

/// Whether values between each pair of bounds, minimum and maximum, may satisfy a condition.
fn may_hold(check: &ColumnCheck, (least, most): &(ArrayRef, ArrayRef)) -> Vec<bool> {
    let test = |comparison, bounds| {
        let test = ColumnTest { comparison, value: check.test.value.clone() };
        test.check(&check.shape, bounds)
    };
    let (low, high) = match check.test.comparison {
        ComparisonOperator::Equal => {
            (test(ComparisonOperator::AtMost, least), test(ComparisonOperator::AtLeast, most))
        }
        below @ (ComparisonOperator::Less | ComparisonOperator::AtMost) => (test(below, least), None),
        above @ (ComparisonOperator::Greater | ComparisonOperator::AtLeast) => (None, test(above, most)),
    };
    let ordered = |at: usize| in_order(&check.shape, least, at) && in_order(&check.shape, most, at);
    let may =
        |mask: &Option<BooleanArray>, at| mask.as_ref().is_none_or(|mask| mask.is_null(at) || mask.value(at));
    (0..least.len().min(most.len())).map(|at| !ordered(at) || may(&low, at) && may(&high, at)).collect()
}

/// Whether a bound is in the order in which conditions are checked: infinities, which are null in rows, are
/// not, and neither are years with other than four digits, which are compared as text.
fn in_order(shape: &ValueShape, bounds: &ArrayRef, at: usize) -> bool {
    match shape {
        ValueShape::Real => return is_finite(bounds, at),
        ValueShape::Date | ValueShape::Timestamp { .. } => {}
        _ => return true,
    }
    let within = |comparison, text: &str| {
        let test =
            ColumnTest { comparison, value: rowmill_core::ports::ComparisonValue::Text(text.to_owned()) };
        test.check(shape, bounds).is_some_and(|mask| mask.is_valid(at) && mask.value(at))
    };
    within(ComparisonOperator::AtLeast, "0") && within(ComparisonOperator::Less, "a")
}

/// Whether a numeric bound is finite, or there is none.
fn is_finite(bounds: &ArrayRef, at: usize) -> bool {
    let double = bounds.as_primitive_opt::<Float64Type>().map(|values| values.value(at).is_finite());
    let single = || bounds.as_primitive_opt::<Float32Type>().map(|values| values.value(at).is_finite());
    bounds.is_null(at) || double.or_else(single).unwrap_or(false)
}
