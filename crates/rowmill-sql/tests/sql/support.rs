//! A table in memory that remembers what it was asked for.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rowmill_sql::{Column, Kind, NamedTable, Output, Query, QueryText, Scan, Table, Value, Wanted};
use rowmill_types::{Problem, ProblemCode};

#[derive(Debug)]
pub(crate) struct Memory {
    columns: Vec<Column>,
    rows: Vec<Vec<Value<'static>>>,
    /// The scan fails behind this many rows.
    fails_after: Option<usize>,
    /// What every scan was asked for.
    asked: Mutex<Vec<Wanted>>,
}

impl Memory {
    /// Rows of an id, a name, a score, a truth and a list.
    pub(crate) fn people() -> Self {
        let columns = [
            ("id", Kind::Integer),
            ("name", Kind::Text),
            ("score", Kind::Real),
            ("ok", Kind::Boolean),
            ("tags", Kind::Nested),
            ("price", Kind::Decimal(10, 2)),
        ];
        let row = |id: i64, name: &'static str, score: f64, tags: &'static str| {
            let name = if name.is_empty() { Value::Null } else { Value::Text(name.into()) };
            let tags = Value::Text(tags.into());
            vec![Value::Integer(id), name, Value::Real(score), Value::Integer(id % 2), tags, Value::Real(2.5)]
        };
        Self {
            columns: columns.map(|(name, kind)| Column { name: name.into(), kind }).into(),
            rows: vec![
                row(1, "Ada", 1.5, "[1,2]"),
                row(2, "Bo", -2.0, "[]"),
                row(3, "", 7.25, r#"["x"]"#),
                row(4, "Dee", 0.0, r#"[{"a":1}]"#),
            ],
            fails_after: None,
            asked: Mutex::default(),
        }
    }

    pub(crate) fn failing_after(mut self, rows: usize) -> Self {
        self.fails_after = Some(rows);
        self
    }

    pub(crate) fn asked(&self) -> Vec<Wanted> {
        self.asked.lock().unwrap().clone()
    }
}

struct MemoryScan {
    columns: Vec<usize>,
    rows: Vec<Vec<Value<'static>>>,
    next: usize,
    fails_after: Option<usize>,
}

impl Table for Memory {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn scan(&self, wanted: &Wanted) -> Result<Box<dyn Scan>, Problem> {
        self.asked.lock().unwrap().push(wanted.clone());
        let (columns, rows) = (wanted.columns.clone(), self.rows.clone());
        Ok(Box::new(MemoryScan { columns, rows, next: 0, fails_after: self.fails_after }))
    }
}

impl Scan for MemoryScan {
    fn advance(&mut self) -> Result<bool, Problem> {
        if self.fails_after == Some(self.next) {
            return Err(Problem::new(ProblemCode::InputUnreadable, "the disk is gone"));
        }
        self.next += 1;
        Ok(self.next <= self.rows.len())
    }

    fn value(&self, column: usize) -> Value<'_> {
        assert!(self.columns.contains(&column), "column {column} was not wanted");
        self.rows[self.next - 1][column].clone()
    }

    fn number(&self) -> u64 {
        self.next as u64 * 10
    }
}

fn temp() -> PathBuf {
    std::env::temp_dir()
}

pub(crate) fn query(table: &Arc<Memory>, sql: &str) -> Result<Query, Problem> {
    let text = QueryText { before: "", text: sql.into(), after: "", flag: "--sql" };
    Query::new(text, vec![NamedTable { name: "input", table: table.clone() }], &temp())
}

/// Every row of the result, values between bars.
pub(crate) fn rows(table: &Arc<Memory>, sql: &str) -> Result<Vec<String>, Problem> {
    let query = query(table, sql)?;
    let count = query.columns().len();
    let mut rows = Vec::new();
    query.run(&Arc::default(), &mut |record| {
        let values: Vec<_> = (0..count).map(|at| shown(record.value(at))).collect();
        rows.push(values.join("|"));
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

fn shown(value: Output<'_>) -> String {
    match value {
        Output::Null => "null".into(),
        Output::Integer(number) => number.to_string(),
        Output::Real(number) => format!("{number:?}"),
        Output::Text(text) => text.into(),
        Output::Bytes(bytes) => format!("{bytes:?}"),
    }
}
