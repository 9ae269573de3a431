//! Parts of a dataset: columns, conditions, and skipped rows.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{
    BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::WriterProperties;
use rowmill_core::ports::{
    ColumnCondition, ComparisonOperator, ComparisonValue, ReadLimit, RequestedDatasetPart,
};
use rowmill_types::{ProblemCode, Row};

use super::support::{Folder, array, drain, open, open_all, rows_of};

const ROWS: i64 = 1_000;

/// A thousand rows in ten row groups, sorted by `n`.
fn sorted(folder: &Folder, name: &str) -> PathBuf {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100))
        .set_data_page_row_count_limit(20)
        .set_write_batch_size(10)
        .build();
    let all = || 0..ROWS;
    let split = all().map(|at| if at % 10 == 3 { "eval" } else { "train" });
    let price =
        Decimal128Array::from_iter_values(all().map(i128::from)).with_precision_and_scale(10, 2).unwrap();
    let mut lists = ListBuilder::new(Int64Builder::new());
    for at in all() {
        lists.append_value((0..at % 3).map(|_| Some(at)));
    }
    let columns = vec![
        ("n", array(Int64Array::from_iter_values(all()))),
        ("split", array(StringArray::from_iter_values(split))),
        ("half", array(Float64Array::from_iter(all().map(|at| (at % 4 != 0).then_some(at as f64 / 2.0))))),
        ("even", array(BooleanArray::from_iter(all().map(|at| Some(at % 2 == 0))))),
        ("day", array(Date32Array::from_iter_values(all().map(|at| at as i32 + 19_000)))),
        ("at", array(TimestampMicrosecondArray::from_iter_values(all().map(|at| at * 3_600_000_000)))),
        ("price", array(price)),
        ("list", array(lists.finish())),
    ];
    folder.write_with(name, properties, columns)
}

fn condition(column: &str, comparison: ComparisonOperator, value: ComparisonValue) -> ColumnCondition {
    ColumnCondition { column: column.into(), comparison, value }
}

fn text(value: &str) -> ComparisonValue {
    ComparisonValue::Text(value.into())
}

fn part(columns: &[&str], conditions: Vec<ColumnCondition>) -> RequestedDatasetPart {
    RequestedDatasetPart {
        columns: Some(columns.iter().map(|name| (*name).to_owned()).collect()),
        conditions,
    }
}

#[test]
fn only_the_columns_asked_for_are_given_in_the_order_of_the_file() {
    let folder = Folder::new();
    let dataset = open(&sorted(&folder, "a.parquet")).unwrap();
    let rows = rows_of(dataset.as_ref(), &part(&["split", "n"], vec![]));
    assert_eq!(rows.len(), 1_000);
    assert_eq!(rows.get(3).unwrap().json_text(), r#"{"n":3,"split":"eval"}"#);
    let rows = rows_of(dataset.as_ref(), &part(&[], vec![]));
    assert_eq!(rows.len(), 1_000);
    assert_eq!((rows[999].number(), rows[999].json_text()), (1_000, "{}"));
}

#[test]
fn a_column_that_is_not_there_is_reported_with_those_that_are() {
    let folder = Folder::new();
    let dataset = open(&sorted(&folder, "a.parquet")).unwrap();
    for part in [
        part(&["n", "splt"], vec![]),
        part(&["n"], vec![condition("splt", ComparisonOperator::Equal, text("eval"))]),
    ] {
        let Err(problem) = dataset.open_part(&part) else { panic!("no such column") };
        assert_eq!(problem.code, ProblemCode::Usage);
        assert_eq!(problem.message, "the input has no column `splt`");
        assert!(problem.hint.unwrap().contains("`split`"));
    }
}

#[test]
fn rows_that_break_a_condition_are_left_out_and_numbers_stay() {
    use ComparisonOperator::{AtLeast, AtMost, Equal, Greater, Less};
    let folder = Folder::new();
    let dataset = open(&sorted(&folder, "a.parquet")).unwrap();
    type Keeps = fn(i64) -> bool;
    let cases: Vec<(Vec<ColumnCondition>, Keeps)> = vec![
        (vec![condition("split", Equal, text("eval"))], |n| n % 10 == 3),
        (vec![condition("split", Equal, text("none"))], |_| false),
        (vec![condition("n", Greater, ComparisonValue::Integer(949))], |n| n > 949),
        (vec![condition("n", Less, ComparisonValue::Real(10.5))], |n| n <= 10),
        (vec![condition("n", Equal, ComparisonValue::Integer(500))], |n| n == 500),
        (vec![condition("half", AtLeast, ComparisonValue::Integer(400))], |n| n >= 800 && n % 4 != 0),
        (vec![condition("half", AtMost, ComparisonValue::Real(0.5))], |n| n == 1),
        (vec![condition("even", Equal, ComparisonValue::Integer(0))], |n| n % 2 == 1),
        (vec![condition("day", Less, text("2022-01-18"))], |n| n < 10),
        (vec![condition("day", Equal, text("2022-01-18"))], |n| n == 10),
        (vec![condition("at", AtLeast, text("1970-02-11T15"))], |n| n >= 999),
        (vec![condition("at", AtLeast, text("1970-02-11"))], |n| n >= 984),
        (
            vec![
                condition("split", Equal, text("eval")),
                condition("n", AtLeast, ComparisonValue::Integer(990)),
            ],
            |n| n == 993,
        ),
        // Not cheap to check here, so nothing is left out.
        (vec![condition("price", Equal, text("1.00"))], |_| true),
        (vec![condition("n", Equal, text("5"))], |_| true),
    ];
    for (conditions, keeps) in cases {
        let rows = rows_of(dataset.as_ref(), &part(&["n"], conditions.clone()));
        let expected: Vec<i64> = (0..ROWS).filter(|n| keeps(*n)).collect();
        let found: Vec<i64> = rows.iter().map(|row| row.field("n").unwrap().parse().unwrap()).collect();
        assert_eq!(found, expected, "{conditions:?}");
        assert!(
            rows.iter().zip(&found).all(|(row, n)| row.number() == n.unsigned_abs() + 1),
            "{conditions:?}"
        );
    }
}

#[test]
fn a_file_without_the_column_of_a_condition_has_no_rows_of_use() {
    let folder = Folder::new();
    let other = folder.write("0.parquet", vec![("m", array(Int64Array::from(vec![1, 2, 3])))]);
    let dataset = open_all(&[other, sorted(&folder, "1.parquet")]).unwrap();
    let conditions = vec![condition("n", ComparisonOperator::AtMost, ComparisonValue::Integer(1))];
    let rows = rows_of(dataset.as_ref(), &part(&["m", "n"], conditions));
    let shown: Vec<_> = rows.iter().map(|row| (row.number(), row.json_text())).collect();
    assert_eq!(shown, [(4, r#"{"m":null,"n":0}"#), (5, r#"{"m":null,"n":1}"#)]);
}

#[test]
fn what_is_skipped_is_what_would_have_been_read() {
    let folder = Folder::new();
    let dataset = open_all(&[sorted(&folder, "0.parquet"), sorted(&folder, "1.parquet")]).unwrap();
    let evals = || vec![condition("split", ComparisonOperator::Equal, text("eval"))];
    let parts = [
        part(&["n"], vec![]),
        part(&["n"], evals()),
        part(&["n", "list"], vec![]),
        part(&["n", "list"], evals()),
    ];
    for part in parts {
        let all: Vec<u64> = rows_of(dataset.as_ref(), &part).iter().map(|row| row.number()).collect();
        // Alternates skipping `skip` rows and reading `read` rows until the end.
        for (skip, read) in
            [(0, 1), (1, 1), (7, 3), (99, 1), (100, 100), (150, 1), (1_000, 5), (1_999, 1), (5_000, 1)]
        {
            let mut source = dataset.open_part(&part).unwrap();
            let mut expected = all.iter();
            loop {
                let passed = source.skip(skip).unwrap();
                let would = (0..skip).map_while(|_| expected.next()).count() as u64;
                assert_eq!(passed, would, "skip {skip} read {read}");
                let mut rows = Vec::new();
                let room = ReadLimit { rows: read, bytes: usize::MAX };
                let more = source.read(&mut rows, room).unwrap();
                let rows: Vec<Row> = rows.into_iter().map(Result::unwrap).collect();
                let numbers: Vec<u64> = rows.iter().map(Row::number).collect();
                for row in &rows {
                    assert_eq!(row.field("n"), Some(((row.number() - 1) % 1_000).to_string().as_str()));
                }
                let would: Vec<u64> = (0..read).map_while(|_| expected.next().copied()).collect();
                assert_eq!(numbers, would, "skip {skip} read {read}");
                if !more {
                    break;
                }
            }
            assert_eq!(source.skip(1).unwrap(), 0, "the end stays the end");
        }
    }
}

#[test]
fn a_far_skip_inside_a_row_group_lands_on_the_right_row() {
    let folder = Folder::new();
    let wide = |at: i64| format!("{at}{}", "x".repeat(20_000));
    let columns = vec![("w", array(StringArray::from_iter_values((0..1_500).map(wide))))];
    let dataset = open(&folder.write("wide.parquet", columns)).unwrap();
    let mut source = dataset.open().unwrap();
    for (skip, expected) in [(0, 1), (900, 902), (3, 906), (400, 1_307)] {
        assert_eq!(source.skip(skip).unwrap(), skip);
        let mut rows = Vec::new();
        // The byte limit of the room bounds how many rows are returned at once.
        assert!(source.read(&mut rows, ReadLimit { rows: 10, bytes: 10_000 }).unwrap());
        let [Ok(row)] = rows.as_slice() else { panic!("one row: {}", rows.len()) };
        assert_eq!(row.number(), expected);
        assert!(row.json_text().starts_with(&format!("{{\"w\":\"{}x", expected - 1)));
    }
    let (rest, problem) = drain(source.as_mut());
    assert_eq!((rest.len(), problem), (193, None));
}

#[test]
fn pages_that_cannot_hold_a_row_of_use_are_not_read() {
    let folder = Folder::new();
    let path = sorted(&folder, "pages.parquet");
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = ArrowReaderMetadata::load(&File::open(&path).unwrap(), options).unwrap();
    let index = Arc::clone(metadata.metadata().page_index().unwrap());
    let first = index.page_locations(0, 0).unwrap()[0].clone();
    let mut bytes = std::fs::read(&path).unwrap();
    let start = usize::try_from(first.offset).unwrap();
    bytes[start..start + usize::try_from(first.compressed_page_size).unwrap()].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let data = open(&path).unwrap();
    assert!(drain(&mut *data.open().unwrap()).1.is_some(), "the first page is damaged");
    let within = vec![
        condition("n", ComparisonOperator::AtLeast, ComparisonValue::Integer(50)),
        condition("n", ComparisonOperator::Less, ComparisonValue::Integer(52)),
    ];
    let rows = rows_of(&*data, &part(&["n", "split"], within));
    let texts: Vec<&str> = rows.iter().map(Row::json_text).collect();
    assert_eq!(texts, [r#"{"n":50,"split":"train"}"#, r#"{"n":51,"split":"train"}"#]);
    assert_eq!(rows[0].number(), 51);
}

#[test]
fn a_group_whose_dictionary_lacks_a_value_is_not_read() {
    let folder = Folder::new();
    let path = sorted(&folder, "dictionary.parquet");
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = ArrowReaderMetadata::load(&File::open(&path).unwrap(), options).unwrap();
    let index = Arc::clone(metadata.metadata().page_index().unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    // Damages the values of `split` in all groups but the last, not their dictionaries.
    for group in 0..9 {
        for page in index.page_locations(group, 1).unwrap() {
            let start = usize::try_from(page.offset).unwrap();
            bytes[start..start + usize::try_from(page.compressed_page_size).unwrap()].fill(0xff);
        }
    }
    std::fs::write(&path, bytes).unwrap();
    let data = open(&path).unwrap();
    let equal = |value| part(&["n"], vec![condition("split", ComparisonOperator::Equal, text(value))]);
    // It is between the minimum and the maximum, so bounds alone do not exclude it.
    assert!(rows_of(&*data, &equal("other")).is_empty());
    let (_, problem) = drain(&mut *data.open_part(&equal("eval")).unwrap());
    assert!(problem.is_some(), "the values are damaged");
}

#[test]
fn what_has_no_place_in_the_order_of_a_column_leaves_out_no_other_row() {
    use ComparisonOperator::{AtLeast, AtMost, Equal, Greater, Less};
    let folder = Folder::new();
    for odd in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let values = Float64Array::from(vec![0.1, odd, 0.5]);
        let short = Float32Array::from(vec![0.25, odd as f32, 0.5]);
        let path = folder.write("odd.parquet", vec![("x", array(values)), ("y", array(short))]);
        let data = open(&path).unwrap();
        let found = |column, comparison, value| {
            let rows = rows_of(
                &*data,
                &part(&["x"], vec![condition(column, comparison, ComparisonValue::Real(value))]),
            );
            rows.iter().map(Row::number).filter(|number| *number != 2).collect::<Vec<_>>()
        };
        for (comparison, value, expected) in [
            (Greater, 0.3, &[3][..]),
            (AtLeast, 0.5, &[3]),
            (Equal, 0.5, &[3]),
            (Less, 0.3, &[1]),
            (AtMost, 9.0, &[1, 3]),
        ] {
            assert_eq!(found("x", comparison, value), expected, "{odd} {comparison:?}");
            assert_eq!(found("y", comparison, value), expected, "{odd} {comparison:?}");
        }
    }
    // The year 29349.
    let days = Date32Array::from(vec![19_000, 10_000_000]);
    let path = folder.write("far.parquet", vec![("day", array(days))]);
    let after = part(&["day"], vec![condition("day", Greater, text("2020-01-01"))]);
    assert_eq!(rows_of(&*open(&path).unwrap(), &after).len(), 2);
}
