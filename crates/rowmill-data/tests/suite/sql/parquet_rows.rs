//! The rows of the comparison as Parquet, with its types.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

/// A file of these rows, in several row groups, so that some can be skipped.
pub(crate) fn parquet_file(lines: &str) -> Vec<u8> {
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let columns = vec![
        ("id", whole(&rows, "/id")),
        ("name", text(&rows, "/name")),
        ("split", text(&rows, "/split")),
        (
            "score",
            Arc::new(rows.iter().map(|row| row["score"].as_f64()).collect::<Float64Array>()) as ArrayRef,
        ),
        ("n", whole(&rows, "/n")),
        ("flag", truth(&rows, "/flag")),
        ("day", Arc::new(rows.iter().map(|row| row["day"].as_str().map(days)).collect::<Date32Array>())),
        (
            "moment",
            Arc::new(
                rows.iter()
                    .map(|row| row["moment"].as_str().map(microseconds))
                    .collect::<TimestampMicrosecondArray>(),
            ),
        ),
        ("parent", whole(&rows, "/parent")),
        ("tags", tags(&rows)),
        ("meta", meta(&rows)),
        ("note", text(&rows, "/note")),
    ];
    parquet_of(columns)
}

/// A file of columns, in small row groups, so that some can be skipped.
pub(crate) fn parquet_of(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(16)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn values<'r>(rows: &'r [Value], path: &'static str) -> impl Iterator<Item = &'r Value> {
    rows.iter().map(move |row| row.pointer(path).unwrap())
}

fn whole(rows: &[Value], path: &'static str) -> ArrayRef {
    Arc::new(values(rows, path).map(Value::as_i64).collect::<Int64Array>())
}

fn text(rows: &[Value], path: &'static str) -> ArrayRef {
    Arc::new(values(rows, path).map(Value::as_str).collect::<StringArray>())
}

fn truth(rows: &[Value], path: &'static str) -> ArrayRef {
    Arc::new(values(rows, path).map(Value::as_bool).collect::<BooleanArray>())
}

fn days(text: &str) -> i32 {
    let date: Date = text.parse().unwrap();
    (date - "1970-01-01".parse::<Date>().unwrap()).get_days()
}

fn microseconds(text: &str) -> i64 {
    let moment: DateTime = text.parse().unwrap();
    moment.to_zoned(TimeZone::UTC).unwrap().timestamp().as_microsecond()
}

fn tags(rows: &[Value]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        for tag in row["tags"].as_array().unwrap() {
            lists.values().append_value(tag.as_str().unwrap());
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}

fn meta(rows: &[Value]) -> ArrayRef {
    let field = |name: &str, kind: DataType| Arc::new(Field::new(name, kind, true));
    let size = StructArray::from(vec![
        (field("w", DataType::Int64), whole(rows, "/meta/size/w")),
        (field("h", DataType::Int64), whole(rows, "/meta/size/h")),
    ]);
    let kind = arrow_array::Array::data_type(&size).clone();
    Arc::new(StructArray::from(vec![
        (field("lang", DataType::Utf8), text(rows, "/meta/lang")),
        (field("size", kind), Arc::new(size) as ArrayRef),
        (field("ok", DataType::Boolean), truth(rows, "/meta/ok")),
    ]))
}
