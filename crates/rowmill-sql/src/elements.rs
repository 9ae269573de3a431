//! The elements of lists as a virtual table of SQLite, which implements `unnest`.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};

use rusqlite::types::{Value, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor,
    sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use crate::expression::emit::ElementTable;
use crate::unwinding::catch_unwind_for_sqlite;
use crate::values::encoding::elements;
use crate::values::sql_type::SqlType;

/// Registers the elements of lists with a connection.
pub(crate) fn register(connection: &Connection, table: &ElementTable) -> Result<()> {
    const MODULE: Module<'_, ListTable> = Module::eponymous_only_module();
    connection.create_module(table.name.as_str(), &MODULE, Some(table.item.clone()))
}

/// The index of the list among the columns.
const LIST: c_int = 1;

#[repr(C)]
struct ListTable {
    /// The part that SQLite requires.
    base: sqlite3_vtab,
    item: SqlType,
}

#[expect(unsafe_code, reason = "SQLite casts pointers to this type")]
// SAFETY: `ListTable` is `repr(C)` and its first field is `sqlite3_vtab`.
unsafe impl VTab<'_> for ListTable {
    type Aux = SqlType;
    type Cursor = ListCursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&SqlType>,
        _module_name: &[u8],
        _database_name: &[u8],
        _table_name: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        db.config(VTabConfig::Innocuous)?;
        let item = aux.ok_or_else(|| Error::ModuleError("a list without a type".into()))?.clone();
        let text = CString::new("CREATE TABLE x(value, list HIDDEN)")?;
        Ok((Cow::Owned(text), Self { base: sqlite3_vtab::default(), item }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut place = None;
        for (at, constraint) in info.constraints().enumerate() {
            let is_list = constraint.column() == LIST
                && constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ;
            if is_list && constraint.is_usable() {
                place = Some(at);
            }
        }
        let Some(place) = place else { return Ok(false) };
        let mut usage = info.constraint_usage(place);
        usage.set_argv_index(1);
        usage.set_omit(true);
        info.set_estimated_cost(1.0);
        info.set_estimated_rows(8);
        Ok(true)
    }

    fn open(&mut self) -> Result<ListCursor> {
        let base = sqlite3_vtab_cursor::default();
        Ok(ListCursor { base, item: self.item.clone(), elements: Vec::new(), at: 0 })
    }
}

#[repr(C)]
struct ListCursor {
    /// The part that SQLite requires.
    base: sqlite3_vtab_cursor,
    item: SqlType,
    elements: Vec<Value>,
    at: usize,
}

#[expect(unsafe_code, reason = "SQLite casts pointers to this type")]
// SAFETY: `ListCursor` is `repr(C)` and its first field is `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for ListCursor {
    fn filter(&mut self, _idx_num: c_int, _idx_str: Option<&str>, args: &Filters<'_>) -> Result<()> {
        self.at = 0;
        self.elements = match args.iter().next() {
            Some(ValueRef::Blob(list)) => catch_unwind_for_sqlite(|| Ok(elements(list, &self.item)))
                .map_err(|problem| Error::ModuleError(problem.message.to_string()))?,
            _ => Vec::new(),
        };
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.elements.len()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        match self.elements.get(self.at).filter(|_| column != LIST) {
            Some(value) => context.set_result(value),
            None => Ok(()),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(i64::try_from(self.at).unwrap_or(i64::MAX))
    }
}
