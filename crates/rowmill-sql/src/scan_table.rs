//! Virtual tables of SQLite. This file has the only unsafe code of the project: SQLite returns pointers to
//! structures that must begin with its own, and two traits require that promise.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::sync::{Arc, Mutex, PoisonError};

use rowmill_types::Problem;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor,
    sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result, ToSql};

use crate::fields::{FieldForm, TableField};
use crate::scan_plan::ScanPlan;
use crate::table::{
    ComparisonOperator, ComparisonValue, NamedTable, ScanCondition, ScanRequest, SqlTable, SqliteColumnValue,
    TableScan,
};
use crate::unwinding::catch_unwind_for_sqlite;
use crate::values::calendar::{CivilDay, MICROS_PER_DAY, MICROS_PER_SECOND, split_timestamp};
use crate::values::date_text::{date_text, time_text};
use crate::values::encoding::is_wide;
use crate::values::sql_type::SqlType;

/// The estimated number of rows of a table, so that SQLite prefers it as the outer loop.
const LIKELY_ROWS: u32 = 1 << 20;

/// Holds the problem of a scan for the caller of the query, because SQLite only carries a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScanProblemSlot(Arc<Mutex<Option<Problem>>>);

impl ScanProblemSlot {
    pub(crate) fn take(&self) -> Option<Problem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn put(&self, problem: Problem) -> Error {
        let text = problem.message.to_string();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
        Error::ModuleError(text)
    }
}

/// Registers a table with a connection, with the fields that a query uses.
pub(crate) fn register(
    connection: &Connection,
    named: &NamedTable,
    fields: &[TableField],
    problem: &ScanProblemSlot,
) -> Result<()> {
    const MODULE: Module<'_, ScanTable> = Module::eponymous_only_module();
    let source = ScanTableSource {
        name: named.name,
        table: named.table.clone(),
        fields: fields.into(),
        problem: problem.clone(),
    };
    connection.create_module(named.name, &MODULE, Some(source))
}

/// The declaration of a table's fields, in brackets. They have no types for SQLite, so that it does not
/// convert their values. SQLite requires a column, so a table without fields gets one.
pub(crate) fn table_declaration(fields: &[TableField]) -> String {
    let names: Vec<_> = fields.iter().map(TableField::to_string).collect();
    format!("({})", if names.is_empty() { "unused".to_owned() } else { names.join(", ") })
}

#[derive(Clone)]
struct ScanTableSource {
    name: &'static str,
    table: Arc<dyn SqlTable>,
    fields: Arc<[TableField]>,
    problem: ScanProblemSlot,
}

impl ScanTableSource {
    /// The column of a field, and its type.
    fn column(&self, field: usize) -> Option<(TableField, &SqlType)> {
        let field = *self.fields.get(field)?;
        Some((field, &self.table.columns().get(field.column)?.kind))
    }
}

#[repr(C)]
struct ScanTable {
    /// The part that SQLite requires.
    base: sqlite3_vtab,
    source: ScanTableSource,
}

#[expect(unsafe_code, reason = "SQLite casts pointers to this type")]
// SAFETY: `ScanTable` is `repr(C)` and its first field is `sqlite3_vtab`.
unsafe impl VTab<'_> for ScanTable {
    type Aux = ScanTableSource;
    type Cursor = ScanCursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&ScanTableSource>,
        _module_name: &[u8],
        _database_name: &[u8],
        _table_name: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        db.config(VTabConfig::DirectOnly)?;
        let source = aux.ok_or_else(|| Error::ModuleError("a table without rows".into()))?.clone();
        let text = format!("CREATE TABLE x{}", table_declaration(&source.fields));
        Ok((Cow::Owned(CString::new(text)?), Self { base: sqlite3_vtab::default(), source }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut used = Vec::new();
        for (at, constraint) in info.constraints().enumerate() {
            let (Ok(column), Some(comparison)) =
                (usize::try_from(constraint.column()), comparison(&constraint.operator()))
            else {
                continue;
            };
            // The values of an `IN` would be passed in a separate scan each.
            let comparable = self.source.column(column).is_some_and(|(field, kind)| {
                let is_plain = kind.is_real()
                    || matches!(kind, SqlType::Varchar | SqlType::Date | SqlType::Timestamp)
                    || (kind.is_whole() && !is_wide(kind));
                field.form == FieldForm::Value && is_plain
            });
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
        // The cost is the same with and without conditions: they save reading, not scans.
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
    /// The part that SQLite requires.
    base: sqlite3_vtab_cursor,
    source: ScanTableSource,
    /// `None` at the end.
    scan: Option<Box<dyn TableScan>>,
}

impl ScanCursor {
    /// Runs a step of a scan.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Problem>) -> Result<T> {
        catch_unwind_for_sqlite(work).map_err(|problem| self.source.problem.put(problem))
    }
}

#[expect(unsafe_code, reason = "SQLite casts pointers to this type")]
// SAFETY: `ScanCursor` is `repr(C)` and its first field is `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for ScanCursor {
    fn filter(&mut self, _idx_num: c_int, idx_str: Option<&str>, args: &Filters<'_>) -> Result<()> {
        let plan = ScanPlan::parse(idx_str.unwrap_or_default());
        let used = plan.columns(self.source.fields.len());
        let mut columns: Vec<_> =
            used.iter().filter_map(|field| Some(self.source.fields.get(*field)?.column)).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut wanted = ScanRequest { columns, conditions: Vec::new() };
        for ((field, comparison), value) in plan.conditions.into_iter().zip(args.iter()) {
            let Some((field, kind)) = self.source.column(field) else { continue };
            if let Some(value) = scalar(value, kind) {
                wanted.conditions.push(ScanCondition { column: field.column, comparison, value });
            }
        }
        let table = self.source.table.clone();
        let before = self.scan.take();
        self.scan = Some(self.guarded(|| {
            drop(before);
            table.scan(&wanted)
        })?);
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        let Some(mut scan) = self.scan.take() else { return Ok(()) };
        // A finished scan is dropped inside the guard, too.
        self.scan = self.guarded(|| Ok(scan.advance()?.then_some(scan)))?;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.scan.is_none()
    }

    fn column(&self, context: &mut Context, field: c_int) -> Result<()> {
        let field = usize::try_from(field).ok().and_then(|field| self.source.fields.get(field));
        let (Some(scan), Some(field)) = (&self.scan, field) else { return Ok(()) };
        match field.form {
            FieldForm::Value => context.set_result(self.guarded(|| scan.value(field.column))?),
            FieldForm::Json => {
                let raw = self.guarded(|| Ok(scan.raw(field.column)))?;
                context.set_result(raw.map_or(SqliteColumnValue::Null, SqliteColumnValue::Text))
            }
        }
    }

    fn rowid(&self) -> Result<i64> {
        let Some(scan) = &self.scan else { return Ok(0) };
        let number = self.guarded(|| Ok(scan.number()))?;
        Ok(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl Drop for ScanCursor {
    fn drop(&mut self) {
        let scan = self.scan.take();
        // SQLite cannot receive a problem here; the caller of the query finds it.
        drop(self.guarded(|| {
            drop(scan);
            Ok(())
        }));
    }
}

impl ToSql for SqliteColumnValue<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn comparison(operator: &IndexConstraintOp) -> Option<ComparisonOperator> {
    match operator {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Some(ComparisonOperator::Equal),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Some(ComparisonOperator::Less),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Some(ComparisonOperator::AtMost),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Some(ComparisonOperator::Greater),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Some(ComparisonOperator::AtLeast),
        _ => None,
    }
}

/// The value of a condition in the form that rows have; `None` if it cannot be compared.
fn scalar(value: ValueRef<'_>, kind: &SqlType) -> Option<ComparisonValue> {
    match (value, kind) {
        (ValueRef::Integer(days), SqlType::Date) => days
            .checked_mul(MICROS_PER_DAY)
            .and_then(in_four_digits)
            .map(|_| ComparisonValue::Text(date_text(days))),
        (ValueRef::Integer(micros), SqlType::Timestamp) => in_four_digits(micros).map(ComparisonValue::Text),
        (ValueRef::Integer(number), _) => Some(ComparisonValue::Integer(number)),
        (ValueRef::Real(number), _) => Some(ComparisonValue::Real(number)),
        (ValueRef::Text(bytes), SqlType::Varchar) => {
            std::str::from_utf8(bytes).ok().map(|text| ComparisonValue::Text(text.to_owned()))
        }
        _ => None,
    }
}

/// A time as rows show it, if its year has four digits: the texts of other years sort differently.
fn in_four_digits(micros: i64) -> Option<String> {
    let (days, clock) = split_timestamp(micros);
    let year = CivilDay::from_days(days).year;
    let fraction = clock % MICROS_PER_SECOND;
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:06}") };
    let text = format!("{}T{}{fraction}", date_text(days), time_text(clock - clock % MICROS_PER_SECOND));
    (1..=9999).contains(&year).then_some(text)
}
