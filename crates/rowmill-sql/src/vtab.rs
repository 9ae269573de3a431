//! Tables as SQLite sees them. The only unsafe lines of the project are here: SQLite hands
//! back pointers to structures that must begin with its own, and two traits ask for that promise.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use rowmill_types::{Problem, ProblemCode};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor,
    escape_double_quote, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result, ToSql};

use crate::plan::ScanPlan;
use crate::table::{Comparison, Condition, Kind, NamedTable, Scalar, Scan, Table, Value, Wanted};

/// The rows that a table is taken to have, so that it is preferred as the outer loop.
const LIKELY_ROWS: u32 = 1 << 20;

/// Where the problem of a scan is left for whoever runs the query, because SQLite carries
/// nothing but a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScanProblem(Arc<Mutex<Option<Problem>>>);

impl ScanProblem {
    pub(crate) fn take(&self) -> Option<Problem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, problem: Problem) -> Error {
        let text = problem.message.clone();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
        Error::ModuleError(text)
    }
}

/// Makes a table known to a connection.
pub(crate) fn register(connection: &Connection, named: &NamedTable, problem: &ScanProblem) -> Result<()> {
    const MODULE: Module<'_, ScanTable> = Module::eponymous_only_module();
    let source = Source { name: named.name, table: named.table.clone(), problem: problem.clone() };
    connection.create_module(named.name, &MODULE, Some(source))
}

/// The columns of a table with their declared types, between brackets. SQLite has no tables
/// without columns, so a table that has none gets one.
pub(crate) fn declaration(table: &dyn Table) -> String {
    if table.columns().is_empty() {
        return "(\"_\")".to_owned();
    }
    let columns: Vec<_> = table
        .columns()
        .iter()
        .map(|column| format!("\"{}\" {}", escape_double_quote(&column.name), column.kind))
        .collect();
    format!("({})", columns.join(", "))
}

#[derive(Clone)]
struct Source {
    name: &'static str,
    table: Arc<dyn Table>,
    problem: ScanProblem,
}

#[repr(C)]
struct ScanTable {
    /// SQLite's part.
    base: sqlite3_vtab,
    source: Source,
}

#[expect(unsafe_code, reason = "SQLite casts pointers to this type")]
// SAFETY: `ScanTable` is `repr(C)` and its first field is `sqlite3_vtab`.
unsafe impl VTab<'_> for ScanTable {
    type Aux = Source;
    type Cursor = ScanCursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Source>,
        _module_name: &[u8],
        _database_name: &[u8],
        _table_name: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        db.config(VTabConfig::DirectOnly)?;
        let source = aux.ok_or_else(|| Error::ModuleError("a table without rows".into()))?.clone();
        let text = format!("CREATE TABLE x{}", declaration(&*source.table));
        Ok((Cow::Owned(CString::new(text)?), Self { base: sqlite3_vtab::default(), source }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let columns = self.source.table.columns();
        let mut used = Vec::new();
        for (at, constraint) in info.constraints().enumerate() {
            let (Ok(column), Some(comparison)) =
                (usize::try_from(constraint.column()), comparison(&constraint.operator()))
            else {
                continue;
            };
            // The values of an `IN` would be asked for one scan after the other.
            let comparable = columns
                .get(column)
                .is_some_and(|column| matches!(column.kind, Kind::Text | Kind::Integer | Kind::Real));
            if constraint.is_usable()
                && comparable
                && !info.is_in_constraint(at)?
                && info.collation(at)? == "BINARY"
            {
                used.push((at, column, comparison));
            }
        }
        let mut plan =
            ScanPlan { table: self.source.name.to_owned(), mask: info.col_used(), conditions: Vec::new() };
        for (position, (at, column, comparison)) in (1..).zip(used) {
            info.constraint_usage(at).set_argv_index(position);
            plan.conditions.push((column, comparison));
        }
        info.set_idx_str(&plan.to_string());
        // The same cost with and without conditions: they save reading, not scans.
        info.set_estimated_cost(f64::from(LIKELY_ROWS));
        info.set_estimated_rows(i64::from(LIKELY_ROWS));
        Ok(true)
    }

    fn open(&mut self) -> Result<ScanCursor> {
        let base = sqlite3_vtab_cursor::default();
        Ok(ScanCursor { base, source: self.source.clone(), scan: None })
    }
}

#[repr(C)]
struct ScanCursor {
    /// SQLite's part.
    base: sqlite3_vtab_cursor,
    source: Source,
    /// `None` at the end.
    scan: Option<Box<dyn Scan>>,
}

impl ScanCursor {
    /// Runs a part of a scan. A panic must not pass through SQLite, which is no Rust.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Problem>) -> Result<T> {
        catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(Problem::new(ProblemCode::Internal, "reading the input panicked")))
            .map_err(|problem| self.source.problem.put(problem))
    }
}

#[expect(unsafe_code, reason = "SQLite casts pointers to this type")]
// SAFETY: `ScanCursor` is `repr(C)` and its first field is `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for ScanCursor {
    fn filter(&mut self, _idx_num: c_int, idx_str: Option<&str>, args: &Filters<'_>) -> Result<()> {
        let columns = self.source.table.columns();
        let plan = ScanPlan::parse(idx_str.unwrap_or_default());
        let mut wanted = Wanted { columns: plan.columns(columns.len()), conditions: Vec::new() };
        for ((column, comparison), value) in plan.conditions.into_iter().zip(args.iter()) {
            let text = columns.get(column).is_some_and(|column| column.kind == Kind::Text);
            if let Some(value) = scalar(value, text) {
                wanted.conditions.push(Condition { column, comparison, value });
            }
        }
        let table = self.source.table.clone();
        self.scan = None;
        self.scan = Some(self.guarded(|| table.scan(&wanted))?);
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        let Some(mut scan) = self.scan.take() else { return Ok(()) };
        if self.guarded(|| scan.advance())? {
            self.scan = Some(scan);
        }
        Ok(())
    }

    fn eof(&self) -> bool {
        self.scan.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let (Some(scan), Ok(column)) = (&self.scan, usize::try_from(column)) else { return Ok(()) };
        context.set_result(scan.value(column))
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.scan.as_ref().map_or(0, |scan| i64::try_from(scan.number()).unwrap_or(i64::MAX)))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn comparison(operator: &IndexConstraintOp) -> Option<Comparison> {
    match operator {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Some(Comparison::Equal),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Some(Comparison::Less),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Some(Comparison::AtMost),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Some(Comparison::Greater),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Some(Comparison::AtLeast),
        _ => None,
    }
}

/// The value of a condition, where comparing it means the same here and in SQLite.
fn scalar(value: ValueRef<'_>, text_column: bool) -> Option<Scalar> {
    match value {
        ValueRef::Integer(number) if !text_column => Some(Scalar::Integer(number)),
        ValueRef::Real(number) if !text_column => Some(Scalar::Real(number)),
        ValueRef::Text(bytes) if text_column => {
            std::str::from_utf8(bytes).ok().map(|text| Scalar::Text(text.to_owned()))
        }
        _ => None,
    }
}
