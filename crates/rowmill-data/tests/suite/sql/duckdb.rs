//! Queries return the same rows as in DuckDB, for every input format.
//!
//! `scripts/duckdb_answers.py` generates the answers of DuckDB.

use crate::sql::parquet_rows::parquet_file;
use crate::sql::support::{Input, texts};
use rowmill_types::Row;
use serde::Deserialize;
use serde_json::{Map, Value};

const ROWS: &str = include_str!("rows.jsonl");
const QUERIES: &str = include_str!("queries.toml");
const ANSWERS: &str = include_str!("answers.json");

#[derive(Deserialize)]
struct Queries {
    query: Vec<Query>,
}

#[derive(Deserialize)]
struct Query {
    name: String,
    sql: String,
    #[serde(default)]
    ordered: bool,
}

#[derive(Deserialize)]
struct Answer {
    name: String,
    rows: Vec<Map<String, Value>>,
}

#[test]
fn queries_over_jsonl_give_what_duckdb_gives() {
    compare(&Input::new("rows.jsonl", ROWS), &[]);
}

#[test]
fn queries_over_csv_give_what_duckdb_gives() {
    compare(&Input::new("rows.csv", &csv()), &[("tags", "json"), ("meta", "json")]);
}

#[test]
fn queries_over_parquet_give_what_duckdb_gives() {
    compare(&Input::of_bytes("rows.parquet", &parquet_file(ROWS)), &[]);
}

/// The same rows with all values as text; nested values are JSON.
fn csv() -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    for (at, line) in ROWS.lines().enumerate() {
        let row = Row::parse(1, line.to_owned()).unwrap();
        if at == 0 {
            out.write_record(row.fields().map(|(name, _)| name)).unwrap();
        }
        let text = |json: &str| match serde_json::from_str(json).unwrap() {
            Value::Null => String::new(),
            Value::String(text) => text,
            _ => json.to_owned(),
        };
        out.write_record(row.fields().map(|(_, json)| text(json))).unwrap();
    }
    String::from_utf8(out.into_inner().unwrap()).unwrap()
}

fn compare(input: &Input, types: &[(&str, &str)]) {
    let queries: Queries = toml::from_str(QUERIES).unwrap();
    let answers: Vec<Answer> = serde_json::from_str(ANSWERS).unwrap();
    assert!(queries.query.len() >= 34);
    assert_eq!(queries.query.len(), answers.len());
    let mut wrong = Vec::new();
    for (query, answer) in queries.query.iter().zip(answers) {
        assert_eq!(query.name, answer.name);
        let mut ours = match input.typed_sql(&query.sql, types) {
            Ok(dataset) => {
                texts(&*dataset).iter().map(|text| plain_row(serde_json::from_str(text).unwrap())).collect()
            }
            Err(problem) => vec![problem.to_string()],
        };
        let mut theirs: Vec<String> = answer.rows.into_iter().map(plain_row).collect();
        if !query.ordered {
            ours.sort();
            theirs.sort();
        }
        if ours != theirs {
            let first = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
            wrong.push(format!("{}: {} rows for {}\n{first:#?}", query.name, ours.len(), theirs.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(input.heard(), Vec::<String>::new());
}

fn plain_row(row: Map<String, Value>) -> String {
    let fields: Vec<_> = row.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    fields.join(" ")
}

/// A value without the parts that the two write differently: the ends of fractions, nested values as text in
/// CSV, and the `T` in times of Parquet.
fn plain(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("{:.9}", number.as_f64().unwrap()),
        Value::String(text) if text.starts_with(['[', '{']) => {
            serde_json::from_str::<Value>(text).map_or_else(|_| text.clone(), |value| value.to_string())
        }
        Value::String(text) if text.get(10..11) == Some("T") && text.starts_with("20") => {
            text.replacen('T', " ", 1)
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
