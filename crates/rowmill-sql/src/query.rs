//! A `SELECT` that is checked before it is run, and can be run repeatedly.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_types::{Problem, Setting};
use rusqlite::{Connection, Result as SqlResult};

use crate::binder::{BoundQuery, bind_condition, bind_sql};
use crate::connection::open_connection;
use crate::expression::emit::EmittedSql;
use crate::expression::refusal::BindResult;
use crate::fields::{TableField, used_fields};
use crate::output::{QueryResultColumn, QueryResultRow};
use crate::query_problems::{ProblemMaker, duplicate_column_problem, refusal_problem};
use crate::scan_plan::{PlanAssessment, PlanLine, assess_plan};
use crate::scan_table::{ScanProblemSlot, table_declaration};
use crate::table::NamedTable;
use crate::{aggregates, elements, scan_table, sqlite_functions};

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
pub struct PreparedSqlQuery {
    text: QueryText,
    tables: Vec<NamedTable>,
    temp: PathBuf,
    bound: BoundQuery,
    emitted: EmittedSql,
    columns: Vec<QueryResultColumn>,
    assessment: PlanAssessment,
}

impl PreparedSqlQuery {
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
            return Err(duplicate_column_problem(&query.text, &again.name));
        }
        Ok(query)
    }

    /// Checks a condition over the rows of a table, which the condition calls `input`; its subqueries read
    /// the other tables. The query returns a row for each row that satisfies the condition.
    ///
    /// # Errors
    ///
    /// It is not a single condition, is invalid, or is not supported.
    pub fn from_condition(
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
        bound: BindResult<(BoundQuery, EmittedSql)>,
    ) -> Result<Self, Problem> {
        let (bound, emitted) = bound.map_err(|refusal| refusal_problem(&text, &refusal))?;
        let column = |column: &crate::binder::OutputColumn| QueryResultColumn {
            name: column.name.clone(),
            kind: column.kind.clone(),
        };
        let columns = bound.columns.iter().map(column).collect();
        let assessment = PlanAssessment { repeated: Vec::new(), streams: true };
        let mut query = Self { text, tables, temp: temp.to_owned(), bound, emitted, columns, assessment };
        let problem = ScanProblemSlot::default();
        let failures = ProblemMaker { text: &query.text, problem: &problem };
        let connection = query.connect(&problem).map_err(|error| failures.setup_problem(error))?;
        let lines =
            plan_lines(&connection, &query.bound.sql).map_err(|error| failures.prepare_problem(&error))?;
        query.assessment = assess_plan(&lines);
        Ok(query)
    }

    /// The columns of the result.
    #[must_use]
    pub fn columns(&self) -> &[QueryResultColumn] {
        &self.columns
    }

    /// Whether results are returned while the tables are still being read.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        self.assessment.streams && self.assessment.repeated.is_empty()
    }

    /// Whether a table would be read once for each row of another one, and is therefore copied first.
    #[must_use]
    pub fn needs_table_copy(&self, table: &str) -> bool {
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
        each: &mut dyn FnMut(&QueryResultRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let problem = ScanProblemSlot::default();
        let failures = ProblemMaker { text: &self.text, problem: &problem };
        let outcome = self.run_in_sqlite(&problem, cancelled, each);
        match outcome {
            Err(_) if cancelled.load(Ordering::Relaxed) => Ok(()),
            Err(error) => Err(failures.run_problem(&error)),
            Ok(()) => Ok(()),
        }
    }

    fn run_in_sqlite(
        &self,
        problem: &ScanProblemSlot,
        cancelled: &Arc<AtomicBool>,
        each: &mut dyn FnMut(&QueryResultRow<'_>) -> ControlFlow<()>,
    ) -> SqlResult<()> {
        let mut connection = self.connect(problem)?;
        let flag = cancelled.clone();
        connection.progress_handler(STEPS, Some(move || flag.load(Ordering::Relaxed)))?;
        for named in &self.tables {
            if self.needs_table_copy(named.name) {
                copy(&connection, named, &self.fields(named))?;
            }
        }
        let mut statement = connection.prepare(&self.bound.sql)?;
        for (at, value) in self.emitted.parameters.iter().enumerate() {
            statement.raw_bind_parameter(at + 1, value)?;
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if each(&QueryResultRow::new(row, &self.bound.columns)).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Opens a connection with the tables and functions that the query uses.
    fn connect(&self, problem: &ScanProblemSlot) -> SqlResult<Connection> {
        let connection = open_connection(&self.temp)?;
        for function in &self.emitted.functions {
            sqlite_functions::register(&connection, function, &self.text, problem)?;
        }
        for aggregate in &self.emitted.aggregates {
            aggregates::register_aggregate(&connection, aggregate)?;
        }
        for table in &self.emitted.element_tables {
            elements::register(&connection, table)?;
        }
        for named in &self.tables {
            scan_table::register(&connection, named, &self.fields(named), problem)?;
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
    connection.execute(&format!("CREATE TEMP TABLE {name}{}", table_declaration(fields)), [])?;
    connection.execute(&format!("INSERT INTO temp.{name}({listed}) SELECT {listed} FROM main.{name}"), [])?;
    Ok(())
}
