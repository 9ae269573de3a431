//! One `SELECT`, checked before it is run and run as often as its results are wanted.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use rowmill_types::Problem;
use rusqlite::vtab::escape_double_quote;
use rusqlite::{Connection, Result as SqlResult};

use crate::connection::connect;
use crate::failure::{Failures, duplicate, not_one_select};
use crate::guard::{guard, unguard};
use crate::output::Record;
use crate::plan::{Assessment, PlanLine, ScanPlan, assess};
use crate::scanner::shape;
use crate::table::{Kind, NamedTable, Table};
use crate::vtab::{ScanProblem, declaration};

/// How many steps SQLite takes between two looks at whether the results are still wanted.
const STEPS: i32 = 10_000;

/// The text of a query: what the user wrote, and what is put round it.
#[derive(Debug, Clone)]
pub struct QueryText {
    /// Put before the user's text.
    pub before: &'static str,
    /// What the user wrote.
    pub text: String,
    /// Put behind the user's text.
    pub after: &'static str,
    /// The flag it was given with, for messages.
    pub flag: &'static str,
}

/// A query that has been checked.
#[derive(Debug)]
pub struct Query {
    text: QueryText,
    tables: Vec<NamedTable>,
    temp: PathBuf,
    columns: Vec<ResultColumn>,
    assessment: Assessment,
    uses_json: bool,
}

/// A column of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// What its values are, where it is nothing but a column of a table.
    pub kind: Option<Kind>,
}

impl Query {
    /// Checks a query over tables; nothing is read yet. Temporary files go to `temp`.
    ///
    /// # Errors
    ///
    /// It is not one `SELECT`, it is wrong, or it would do more than read.
    pub fn new(text: QueryText, tables: Vec<NamedTable>, temp: &Path) -> Result<Self, Problem> {
        let problem = ScanProblem::default();
        let failures = Failures { text: &text, tables: &tables, problem: &problem };
        check_shape(&text)?;
        let mut connection = connect(temp, &tables, &problem).map_err(|error| failures.setting_up(error))?;
        let names = tables.iter().map(|table| table.name).collect();
        let seen = guard(&mut connection, names).map_err(|error| failures.setting_up(error))?;
        let sql = text.sql();
        let prepared = prepare(&connection, &sql);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refused) = seen.refused.take() {
            return Err(failures.refused(&refused));
        }
        let columns =
            prepared.map_err(|error| failures.preparing(error))?.ok_or_else(|| not_one_select(&text))?;
        let uses_json = seen.json;
        drop(seen);
        unguard(&mut connection).map_err(|error| failures.setting_up(error))?;
        let lines = plan_lines(&connection, &sql).map_err(|error| failures.preparing(error))?;
        let assessment = assess(&lines);
        let mut names = HashSet::new();
        if let Some(again) = columns.iter().find(|column| !names.insert(column.name.as_str())) {
            return Err(duplicate(&text, &again.name));
        }
        Ok(Self { text, tables, temp: temp.to_owned(), columns, assessment, uses_json })
    }

    /// The columns of the result.
    #[must_use]
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// Whether results come while the tables are still being read.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.assessment.streams && self.assessment.repeated.is_empty()
    }

    /// Whether a table is read once for each row of another, and so is copied first.
    #[must_use]
    pub fn copies(&self, table: &str) -> bool {
        self.assessment.repeated.iter().any(|name| name == table)
    }

    /// Whether it uses functions that make JSON.
    #[must_use]
    pub fn uses_json(&self) -> bool {
        self.uses_json
    }

    /// Runs it and hands every row of the result to `each`, until that breaks off or
    /// `cancelled` is set.
    ///
    /// # Errors
    ///
    /// A table cannot be read, a temporary file cannot be written, or the query fails on a
    /// value.
    pub fn run(
        &self,
        cancelled: &Arc<AtomicBool>,
        each: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let problem = ScanProblem::default();
        let failures = Failures { text: &self.text, tables: &self.tables, problem: &problem };
        let outcome = self.run_in_sqlite(&problem, cancelled, each);
        match outcome {
            Err(_) if cancelled.load(Ordering::Relaxed) => Ok(()),
            Err(error) => Err(failures.running(error)),
            Ok(()) => Ok(()),
        }
    }

    fn run_in_sqlite(
        &self,
        problem: &ScanProblem,
        cancelled: &Arc<AtomicBool>,
        each: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> SqlResult<()> {
        let mut connection = connect(&self.temp, &self.tables, problem)?;
        let flag = cancelled.clone();
        connection.progress_handler(STEPS, Some(move || flag.load(Ordering::Relaxed)))?;
        for named in &self.tables {
            if self.copies(named.name) {
                copy(&connection, named, &self.text.sql())?;
            }
        }
        let _notes = guard(&mut connection, self.tables.iter().map(|table| table.name).collect())?;
        let sql = self.text.sql();
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if each(&Record::new(row)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl QueryText {
    fn sql(&self) -> String {
        format!("{}{}{}", self.before, self.text, self.after)
    }
}

/// Refuses what is clearly not one query before SQLite sees it.
fn check_shape(text: &QueryText) -> Result<(), Problem> {
    let found = shape(&text.text);
    let alone = text.before.is_empty();
    let one = found.second.is_none() && (alone || (found.end.is_none() && found.unopened.is_none()));
    let select = !alone || matches!(found.first_word.as_str(), "SELECT" | "WITH" | "VALUES");
    if one && select && !found.first_word.is_empty() { Ok(()) } else { Err(not_one_select(text)) }
}

/// The columns of the result, `None` if it is no query.
fn prepare(connection: &Connection, sql: &str) -> SqlResult<Option<Vec<ResultColumn>>> {
    let statement = connection.prepare(sql)?;
    if !statement.readonly() || statement.is_explain() != 0 || statement.column_count() == 0 {
        return Ok(None);
    }
    if statement.parameter_count() > 0 {
        return Err(rusqlite::Error::InvalidParameterCount(0, statement.parameter_count()));
    }
    let columns = statement.columns();
    Ok(Some(
        columns
            .map(|column| ResultColumn {
                name: column.name().to_owned(),
                kind: column.decl_type().and_then(Kind::declared),
            })
            .collect(),
    ))
}

fn plan_lines(connection: &Connection, sql: &str) -> SqlResult<Vec<PlanLine>> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    let lines = statement
        .query_map([], |row| Ok(PlanLine { id: row.get(0)?, parent: row.get(1)?, detail: row.get(3)? }))?;
    lines.collect()
}

/// Copies what the query uses of a table into a temporary table of the same name, which
/// SQLite can index for itself.
fn copy(connection: &Connection, named: &NamedTable, sql: &str) -> SqlResult<()> {
    let table = &*named.table;
    let used = used_columns(connection, named, sql)?;
    let quoted = |name: &str| format!("\"{}\"", escape_double_quote(name));
    let names: Vec<_> = table.columns().iter().map(|column| column.name.as_str()).collect();
    // All names are there, so that the query means the same; columns that it does not use stay null.
    let mut listed: Vec<_> = used.iter().filter_map(|at| names.get(*at)).map(|name| quoted(name)).collect();
    if let Some(number) = row_number_name(table) {
        listed.insert(0, number.to_owned());
    } else if listed.is_empty() {
        listed.extend(names.first().map(|name| quoted(name)));
    }
    let listed = listed.join(", ");
    let name = quoted(named.name);
    let create = format!("CREATE TEMP TABLE {name}{}", declaration(table));
    let insert = format!("INSERT INTO temp.{name}({listed}) SELECT {listed} FROM main.{name}");
    connection.execute(&create, [])?;
    connection.execute(&insert, [])?;
    Ok(())
}

/// The columns that any scan of the table uses.
fn used_columns(connection: &Connection, named: &NamedTable, sql: &str) -> SqlResult<Vec<usize>> {
    let mut all = ScanPlan::default();
    for line in plan_lines(connection, sql)? {
        if let Some((_, scan)) = line.detail.split_once("VIRTUAL TABLE INDEX 0:") {
            let plan = ScanPlan::parse(scan);
            all.mask |= if plan.table == named.name { plan.mask } else { 0 };
        }
    }
    Ok(all.columns(named.table.columns().len()))
}

/// The name that stands for the number of a row, unless columns have all of its names.
fn row_number_name(table: &dyn Table) -> Option<&'static str> {
    let taken = |name: &str| table.columns().iter().any(|column| column.name.eq_ignore_ascii_case(name));
    ["rowid", "_rowid_", "oid"].into_iter().find(|name| !taken(name))
}
