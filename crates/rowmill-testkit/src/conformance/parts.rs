//! The contract of reading a part of a dataset.

use std::collections::HashMap;

use rowmill_core::ports::{Comparison, Condition, Dataset, Part, Scalar};
use rowmill_types::{Row, SourceRow};
use serde_json::Value;

use super::dataset::number;
use super::guard::{Checked, Suite, require};
use super::reading::all_of;

/// How many parts of each kind are read.
const MOST: usize = 4;

/// Reads parts with fewer columns, and with conditions that some rows satisfy.
pub(super) fn check(suite: &mut Suite, dataset: &dyn Dataset, rows: &[SourceRow]) {
    suite.check("a part with everything", || holds(dataset, rows, &Part::default()));
    suite.check("a part without columns", || {
        holds(dataset, rows, &Part { columns: Some(Vec::new()), conditions: Vec::new() })
    });
    let names = names(dataset, rows);
    for name in names.iter().take(MOST) {
        let part = Part { columns: Some(vec![name.clone()]), conditions: Vec::new() };
        suite.check(&format!("a part with the column `{name}`"), || holds(dataset, rows, &part));
    }
    for condition in conditions(rows, &names) {
        let Condition { column, comparison, value } = &condition;
        let doing = format!("a part where `{column}` is {comparison:?} {value:?}");
        let part = Part { columns: None, conditions: vec![condition.clone()] };
        suite.check(&doing, || holds(dataset, rows, &part));
    }
}

/// The columns in the order of the input.
fn names(dataset: &dyn Dataset, rows: &[SourceRow]) -> Vec<String> {
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
fn conditions(rows: &[SourceRow], names: &[String]) -> Vec<Condition> {
    use Comparison::{AtLeast, AtMost, Equal, Greater, Less};
    let good: Vec<&Row> = rows.iter().flatten().collect();
    let Some(middle) = good.get(good.len() / 2) else { return Vec::new() };
    let of_column = |name: &String| {
        let value = scalar(middle.field(name)?)?;
        let condition = |comparison| Condition { column: name.clone(), comparison, value: value.clone() };
        Some([Equal, Less, AtMost, Greater, AtLeast].map(condition))
    };
    names.iter().filter_map(of_column).take(MOST).flatten().collect()
}

/// Values that can be compared unambiguously: whole numbers and texts.
fn scalar(value: &str) -> Option<Scalar> {
    match serde_json::from_str(value).ok()? {
        Value::Number(number) => number.as_i64().map(Scalar::Integer),
        Value::String(text) => Some(Scalar::Text(text)),
        _ => None,
    }
}

/// Whether a row unambiguously satisfies a condition.
fn satisfies(row: &Row, condition: &Condition) -> bool {
    let Some(value) = row.field(&condition.column).and_then(scalar) else { return false };
    let order = match (&value, &condition.value) {
        (Scalar::Integer(left), Scalar::Integer(right)) => left.cmp(right),
        (Scalar::Text(left), Scalar::Text(right)) => left.cmp(right),
        _ => return false,
    };
    match condition.comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Less => order.is_lt(),
        Comparison::AtMost => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::AtLeast => order.is_ge(),
    }
}

/// Checks that a part has every row that belongs to it, with the number and the values of the whole.
fn holds(dataset: &dyn Dataset, rows: &[SourceRow], part: &Part) -> Checked {
    let opened =
        dataset.open_part(part).map_err(|problem| format!("it cannot be opened: {}", problem.message));
    let read = all_of(&mut *opened?)?;
    let whole: HashMap<u64, &SourceRow> = rows.iter().map(|row| (number(row), row)).collect();
    let found: HashMap<u64, &SourceRow> = read.iter().map(|row| (number(row), row)).collect();
    require(found.len() == read.len(), || "a row number comes twice".to_owned())?;
    let growing = read.windows(2).all(|pair| matches!(pair, [left, right] if number(left) < number(right)));
    require(growing, || "its rows are not in the order of the whole".to_owned())?;
    for number in read.iter().map(number) {
        require(whole.contains_key(&number), || format!("it has a row {number}, and the whole has none"))?;
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
fn same_values(whole: &SourceRow, read: &SourceRow, part: &Part) -> Checked {
    // The mistake of a bad row may be in a column that is not read.
    let Ok(whole) = whole else { return Ok(()) };
    let read = read.as_ref().map_err(|bad| format!("row {} is bad: {}", bad.number, bad.message))?;
    let wanted =
        |name: &str| part.columns.as_ref().is_none_or(|columns| columns.iter().any(|one| one == name));
    for (name, value) in whole.fields().filter(|(name, _)| wanted(name)) {
        let found = read.field(name).unwrap_or("nothing");
        require(found == value, || {
            format!("row {} has {found} as its `{name}` and {value} in the whole", whole.number())
        })?;
    }
    Ok(())
}
