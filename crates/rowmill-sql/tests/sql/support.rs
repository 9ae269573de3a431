//! A table in memory that records which columns and conditions were requested.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rowmill_sql::{
    NamedTable, PreparedSqlQuery, QueryText, ScanRequest, SqlTable, SqlTableColumn, SqlType,
    SqliteColumnValue, TableScan, TextInterpretation, sqlite_value_from_json,
};
use rowmill_types::{Problem, ProblemCode, Setting};

/// A stage of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panics {
    Begin,
    Advance,
    Value,
    Raw,
    Number,
    Drop,
}

#[derive(Debug)]
pub(crate) struct Memory {
    columns: Vec<SqlTableColumn>,
    /// The JSON of every value.
    rows: Vec<Vec<&'static str>>,
    /// The scan fails after this many rows.
    fails_after: Option<usize>,
    /// The stage at which the scan panics.
    panics_in: Option<Panics>,
    /// What every scan requested.
    asked: Mutex<Vec<ScanRequest>>,
}

impl Memory {
    /// Rows with an id, a name, a score, a boolean, a list, a price, a time and a struct.
    pub(crate) fn people() -> Self {
        let columns = [
            ("id", "BIGINT"),
            ("name", "VARCHAR"),
            ("score", "DOUBLE"),
            ("ok", "BOOLEAN"),
            ("tags", "VARCHAR[]"),
            ("price", "DECIMAL(10,2)"),
            ("at", "TIMESTAMP"),
            ("meta", "STRUCT(lang VARCHAR, size BIGINT)"),
        ];
        let column = |(name, kind): (&str, &str)| {
            let kind = SqlType::from_name(kind).unwrap();
            let has_raw = !matches!(kind, SqlType::BigInt | SqlType::Varchar | SqlType::Boolean);
            SqlTableColumn { name: name.into(), kind, has_raw, note: None }
        };
        Self {
            columns: columns.map(column).into(),
            rows: vec![
                vec![
                    "1",
                    "\"Ada\"",
                    "1.50",
                    "true",
                    r#"["x", "y"]"#,
                    "\"2.50\"",
                    "\"2024-01-01T05:00:00\"",
                    r#"{"size": 1, "lang": "de"}"#,
                ],
                vec![
                    "2",
                    "\"Bo\"",
                    "-2.0",
                    "false",
                    "[]",
                    "\"10.00\"",
                    "\"2024-01-01 07:00:00\"",
                    r#"{"lang":"en"}"#,
                ],
                vec!["3", "null", "7.25", "true", r#"["x"]"#, "null", "null", "null"],
                vec![
                    "4",
                    "\"Dee\"",
                    "0.0",
                    "false",
                    "null",
                    "\"0.05\"",
                    "\"2023-12-31 23:59:59.5\"",
                    r#"{"lang":"de","size":7}"#,
                ],
            ],
            fails_after: None,
            panics_in: None,
            asked: Mutex::default(),
        }
    }

    pub(crate) fn failing_after(mut self, rows: usize) -> Self {
        self.fails_after = Some(rows);
        self
    }

    pub(crate) fn panicking_in(mut self, part: Panics) -> Self {
        self.panics_in = Some(part);
        self
    }

    pub(crate) fn asked(&self) -> Vec<ScanRequest> {
        self.asked.lock().unwrap().clone()
    }
}

struct MemoryScan {
    columns: Vec<usize>,
    kinds: Vec<SqlTableColumn>,
    rows: Vec<Vec<&'static str>>,
    next: usize,
    fails_after: Option<usize>,
    panics_in: Option<Panics>,
}

impl MemoryScan {
    fn come_to(&self, part: Panics) {
        assert!(self.panics_in != Some(part), "panics in {part:?}");
    }
}

impl Drop for MemoryScan {
    fn drop(&mut self) {
        self.come_to(Panics::Drop);
    }
}

impl SqlTable for Memory {
    fn columns(&self) -> &[SqlTableColumn] {
        &self.columns
    }

    fn scan(&self, wanted: &ScanRequest) -> Result<Box<dyn TableScan>, Problem> {
        self.asked.lock().unwrap().push(wanted.clone());
        let Self { columns, rows, fails_after, panics_in, .. } = self;
        let scan = MemoryScan {
            columns: wanted.columns.clone(),
            kinds: columns.clone(),
            rows: rows.clone(),
            next: 0,
            fails_after: *fails_after,
            panics_in: *panics_in,
        };
        scan.come_to(Panics::Begin);
        Ok(Box::new(scan))
    }
}

impl TableScan for MemoryScan {
    fn advance(&mut self) -> Result<bool, Problem> {
        self.come_to(Panics::Advance);
        if self.fails_after == Some(self.next) {
            return Err(Problem::new(ProblemCode::InputUnreadable, "the disk is gone"));
        }
        self.next += 1;
        Ok(self.next <= self.rows.len())
    }

    fn value(&self, column: usize) -> Result<SqliteColumnValue<'_>, Problem> {
        self.come_to(Panics::Value);
        assert!(self.columns.contains(&column), "column {column} was not wanted");
        let json = self.rows[self.next - 1][column];
        Ok(sqlite_value_from_json(json, &self.kinds[column].kind, TextInterpretation::AlwaysText).unwrap())
    }

    fn raw(&self, column: usize) -> Option<Cow<'_, str>> {
        self.come_to(Panics::Raw);
        assert!(self.columns.contains(&column), "column {column} was not wanted");
        Some(Cow::Borrowed(self.rows[self.next - 1][column]))
    }

    fn number(&self) -> u64 {
        self.come_to(Panics::Number);
        self.next as u64 * 10
    }
}

fn temp() -> PathBuf {
    std::env::temp_dir()
}

pub(crate) fn query(table: &Arc<Memory>, sql: &str) -> Result<PreparedSqlQuery, Problem> {
    let text = QueryText { text: sql.into(), setting: Setting::Sql };
    PreparedSqlQuery::new(text, vec![NamedTable { name: "input", table: table.clone() }], &temp())
}

/// Every row of the result, with values separated by bars.
pub(crate) fn rows(table: &Arc<Memory>, sql: &str) -> Result<Vec<String>, Problem> {
    let query = query(table, sql)?;
    let count = query.columns().len();
    let mut rows = Vec::new();
    query.run(&Arc::default(), &mut |record| {
        let value = |at| {
            let mut text = String::new();
            record.write_column_json(at, &mut text);
            text
        };
        rows.push((0..count).map(value).collect::<Vec<_>>().join("|"));
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}
