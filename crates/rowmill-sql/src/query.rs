//! A `SELECT` that is checked before it is run, and can be run repeatedly.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_types::{Problem, Setting};
use rusqlite::{Connection, Result as SqlResult};

use crate::binder::{BoundQuery, bind_condition, bind_sql};
use crate::connection::connect;
use crate::expression::emit::Emitted;
use crate::expression::refusal::Bound;
use crate::failure::{Failures, duplicate, refused};
use crate::fields::{TableField, used_fields};
use crate::output::{Record, ResultColumn};
use crate::plan::{Assessment, PlanLine, assess};
use crate::table::NamedTable;
use crate::vtab::{ScanProblem, declaration};
use crate::{aggregates, compute, elements, vtab};

/// How many steps SQLite takes between two checks whether the results are still wanted.
const STEPS: i32 = 10_000;

/// The text of a query.
#[derive(Debug, Clone)]
pub struct QueryText {
    /// The query as the user wrote it.
    pub text: String,
    /// The setting that contained it, for messages.
    pub setting: Setting,
}

/// A query that has been checked.
#[derive(Debug)]
pub struct Query {
    text: QueryText,
    tables: Vec<NamedTable>,
    temp: PathBuf,
    bound: BoundQuery,
    emitted: Emitted,
    columns: Vec<ResultColumn>,
    assessment: Assessment,
}

impl Query {
    /// Checks a query over tables; nothing is read yet. Temporary files are written to `temp`.
    ///
    /// # Errors
    ///
    /// It is not a single `SELECT`, is invalid, or is not supported.
    pub fn new(text: QueryText, tables: Vec<NamedTable>, temp: &Path) -> Result<Self, Problem> {
        let bound = bind_sql(&text.text, &tables);
        let query = Self::checked(text, tables, temp, bound)?;
        let mut names = HashSet::new();
        if let Some(again) = query.columns.iter().find(|column| !names.insert(column.name.as_str())) {
            return Err(duplicate(&query.text, &again.name));
        }
        Ok(query)
    }

    /// Checks a condition over the rows of a table, which the condition calls `input`; its subqueries read
    /// the other tables. The query returns a row for each row that satisfies the condition.
    ///
    /// # Errors
    ///
    /// It is not a single condition, is invalid, or is not supported.
    pub fn condition(
        text: QueryText,
        rows: NamedTable,
        others: Vec<NamedTable>,
        temp: &Path,
    ) -> Result<Self, Problem> {
        let bound = bind_condition(&text.text, &rows, &others);
        let tables = others.into_iter().chain([rows]).collect();
        Self::checked(text, tables, temp, bound)
    }

    fn checked(
        text: QueryText,
        tables: Vec<NamedTable>,
        temp: &Path,
        bound: Bound<(BoundQuery, Emitted)>,
    ) -> Result<Self, Problem> {
        let (bound, emitted) = bound.map_err(|refusal| refused(&text, &refusal))?;
        let column = |column: &crate::binder::OutputColumn| ResultColumn {
            name: column.name.clone(),
            kind: column.kind.clone(),
        };
        let columns = bound.columns.iter().map(column).collect();
        let assessment = Assessment { repeated: Vec::new(), streams: true };
        let mut query = Self { text, tables, temp: temp.to_owned(), bound, emitted, columns, assessment };
        let problem = ScanProblem::default();
        let failures = Failures { text: &query.text, problem: &problem };
        let connection = query.connect(&problem).map_err(|error| failures.setting_up(error))?;
        let lines = plan_lines(&connection, &query.bound.sql).map_err(|error| failures.preparing(&error))?;
        query.assessment = assess(&lines);
        Ok(query)
    }

    /// The columns of the result.
    #[must_use]
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// Whether results are returned while the tables are still being read.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.assessment.streams && self.assessment.repeated.is_empty()
    }

    /// Whether a table would be read once for each row of another one, and is therefore copied first.
    #[must_use]
    pub fn copies(&self, table: &str) -> bool {
        self.assessment.repeated.iter().any(|name| name == table)
    }

    /// Runs the query and passes every row of the result to `each`, until that breaks or `cancelled` is set.
    ///
    /// # Errors
    ///
    /// A table cannot be read, a temporary file cannot be written, or the query fails on a value.
    pub fn run(
        &self,
        cancelled: &Arc<AtomicBool>,
        each: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let problem = ScanProblem::default();
        let failures = Failures { text: &self.text, problem: &problem };
        let outcome = self.run_in_sqlite(&problem, cancelled, each);
        match outcome {
            Err(_) if cancelled.load(Ordering::Relaxed) => Ok(()),
            Err(error) => Err(failures.running(&error)),
            Ok(()) => Ok(()),
        }
    }

    fn run_in_sqlite(
        &self,
        problem: &ScanProblem,
        cancelled: &Arc<AtomicBool>,
        each: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> SqlResult<()> {
        let mut connection = self.connect(problem)?;
        let flag = cancelled.clone();
        connection.progress_handler(STEPS, Some(move || flag.load(Ordering::Relaxed)))?;
        for named in &self.tables {
            if self.copies(named.name) {
                copy(&connection, named, &self.fields(named))?;
            }
        }
        let mut statement = connection.prepare(&self.bound.sql)?;
        for (at, value) in self.emitted.parameters.iter().enumerate() {
            statement.raw_bind_parameter(at + 1, value)?;
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if each(&Record::new(row, &self.bound.columns)).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Opens a connection with the tables and functions that the query uses.
    fn connect(&self, problem: &ScanProblem) -> SqlResult<Connection> {
        let connection = connect(&self.temp)?;
        for function in &self.emitted.functions {
            compute::register(&connection, function, &self.text, problem)?;
        }
        for aggregate in &self.emitted.aggregates {
            aggregates::register(&connection, aggregate)?;
        }
        for table in &self.emitted.element_tables {
            elements::register(&connection, table)?;
        }
        for named in &self.tables {
            vtab::register(&connection, named, &self.fields(named), problem)?;
        }
        Ok(connection)
    }

    fn fields(&self, named: &NamedTable) -> Vec<TableField> {
        used_fields(&self.bound.sql, &self.emitted, named.name)
    }
}

fn plan_lines(connection: &Connection, sql: &str) -> SqlResult<Vec<PlanLine>> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    let mut rows = statement.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        lines.push(PlanLine { id: row.get(0)?, parent: row.get(1)?, detail: row.get(3)? });
    }
    Ok(lines)
}

/// Copies the fields that the query uses into a temporary table of the same name, for which SQLite can create
/// an index.
fn copy(connection: &Connection, named: &NamedTable, fields: &[TableField]) -> SqlResult<()> {
    let name = named.name;
    let listed: Vec<_> =
        std::iter::once("rowid".to_owned()).chain(fields.iter().map(TableField::to_string)).collect();
    let listed = listed.join(", ");
    connection.execute(&format!("CREATE TEMP TABLE {name}{}", declaration(fields)), [])?;
    connection.execute(&format!("INSERT INTO temp.{name}({listed}) SELECT {listed} FROM main.{name}"), [])?;
    Ok(())
}
