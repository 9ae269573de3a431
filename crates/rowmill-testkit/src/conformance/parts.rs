//! The contract of reading a part of a dataset.

use std::collections::HashMap;

use rowmill_core::ports::{
    ColumnCondition, ComparisonOperator, ComparisonValue, Dataset, RequestedDatasetPart,
};
use rowmill_types::{Row, RowReadResult};
use serde_json::Value;

use super::check_suite::{CheckResult, CheckSuite, ensure};
use super::dataset::number;
use super::reading::read_all;

/// How many parts of each kind are read.
const MOST: usize = 4;

/// Reads parts with fewer columns, and with conditions that some rows satisfy.
pub(super) fn check(suite: &mut CheckSuite, dataset: &dyn Dataset, rows: &[RowReadResult]) {
    suite.check("a part with everything", || holds(dataset, rows, &RequestedDatasetPart::default()));
    suite.check("a part without columns", || {
        holds(dataset, rows, &RequestedDatasetPart { columns: Some(Vec::new()), conditions: Vec::new() })
    });
    let names = names(dataset, rows);
    for name in names.iter().take(MOST) {
        let part = RequestedDatasetPart { columns: Some(vec![name.clone()]), conditions: Vec::new() };
        suite.check(&format!("a part with the column `{name}`"), || holds(dataset, rows, &part));
    }
    for condition in conditions(rows, &names) {
        let ColumnCondition { column, comparison, value } = &condition;
        let doing = format!("a part where `{column}` is {comparison:?} {value:?}");
        let part = RequestedDatasetPart { columns: None, conditions: vec![condition.clone()] };
        suite.check(&doing, || holds(dataset, rows, &part));
    }
}

/// The columns in the order of the input.
fn names(dataset: &dyn Dataset, rows: &[RowReadResult]) -> Vec<String> {
    if let Ok(Some(columns)) = dataset.columns() {
        return columns.into_iter().map(|column| column.name).collect();
    }
    let mut names: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flatten().flat_map(Row::fields) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Conditions on values that occur in the rows.
fn conditions(rows: &[RowReadResult], names: &[String]) -> Vec<ColumnCondition> {
    use ComparisonOperator::{AtLeast, AtMost, Equal, Greater, Less};
    let good: Vec<&Row> = rows.iter().flatten().collect();
    let Some(middle) = good.get(good.len() / 2) else { return Vec::new() };
    let of_column = |name: &String| {
        let value = scalar(middle.field(name)?)?;
        let condition =
            |comparison| ColumnCondition { column: name.clone(), comparison, value: value.clone() };
        Some([Equal, Less, AtMost, Greater, AtLeast].map(condition))
    };
    names.iter().filter_map(of_column).take(MOST).flatten().collect()
}

/// Values that can be compared unambiguously: whole numbers and texts.
fn scalar(value: &str) -> Option<ComparisonValue> {
    match serde_json::from_str(value).ok()? {
        Value::Number(number) => number.as_i64().map(ComparisonValue::Integer),
        Value::String(text) => Some(ComparisonValue::Text(text)),
        _ => None,
    }
}

/// Whether a row unambiguously satisfies a condition.
fn satisfies(row: &Row, condition: &ColumnCondition) -> bool {
    let Some(value) = row.field(&condition.column).and_then(scalar) else { return false };
    let order = match (&value, &condition.value) {
        (ComparisonValue::Integer(left), ComparisonValue::Integer(right)) => left.cmp(right),
        (ComparisonValue::Text(left), ComparisonValue::Text(right)) => left.cmp(right),
        _ => return false,
    };
    match condition.comparison {
        ComparisonOperator::Equal => order.is_eq(),
        ComparisonOperator::Less => order.is_lt(),
        ComparisonOperator::AtMost => order.is_le(),
        ComparisonOperator::Greater => order.is_gt(),
        ComparisonOperator::AtLeast => order.is_ge(),
    }
}

/// Checks that a part has every row that belongs to it, with the number and the values of the whole.
fn holds(dataset: &dyn Dataset, rows: &[RowReadResult], part: &RequestedDatasetPart) -> CheckResult {
    let opened =
        dataset.open_part(part).map_err(|problem| format!("it cannot be opened: {}", problem.message));
    let read = read_all(&mut *opened?)?;
    let whole: HashMap<u64, &RowReadResult> = rows.iter().map(|row| (number(row), row)).collect();
    let found: HashMap<u64, &RowReadResult> = read.iter().map(|row| (number(row), row)).collect();
    ensure(found.len() == read.len(), || "a row number comes twice".to_owned())?;
    let growing = read.windows(2).all(|pair| matches!(pair, [left, right] if number(left) < number(right)));
    ensure(growing, || "its rows are not in the order of the whole".to_owned())?;
    for number in read.iter().map(number) {
        ensure(whole.contains_key(&number), || format!("it has a row {number}, and the whole has none"))?;
    }
    for row in rows {
        let belongs = match row {
            Ok(row) => part.conditions.iter().all(|condition| satisfies(row, condition)),
            // Whether a bad row satisfies a condition is unknown.
            Err(_) => part.conditions.is_empty(),
        };
        if belongs {
            let number = number(row);
            let read = found.get(&number).ok_or_else(|| format!("row {number} is missing"))?;
            same_values(row, read, part)?;
        }
    }
    Ok(())
}

/// Checks that the columns of the part have the values of the whole.
fn same_values(whole: &RowReadResult, read: &RowReadResult, part: &RequestedDatasetPart) -> CheckResult {
    // The mistake of a bad row may be in a column that is not read.
    let Ok(whole) = whole else { return Ok(()) };
    let read = read.as_ref().map_err(|bad| format!("row {} is bad: {}", bad.number, bad.message))?;
    let wanted =
        |name: &str| part.columns.as_ref().is_none_or(|columns| columns.iter().any(|one| one == name));
    for (name, value) in whole.fields().filter(|(name, _)| wanted(name)) {
        let found = read.field(name).unwrap_or("nothing");
        ensure(found == value, || {
            format!("row {} has {found} as its `{name}` and {value} in the whole", whole.number())
        })?;
    }
    Ok(())
}
