//! A connection with little memory that has the tables and functions of a query.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result};

/// How much memory SQLite may use as page cache, which also bounds how much it sorts at once.
const CACHE_KIB: i32 = 8 * 1024;

/// How many additional threads sort while more is read. They compare bytes and never call our code.
const SORTING_THREADS: i32 = 2;

/// Opens a separate connection whose temporary files are in `temp`.
pub(crate) fn open_connection(temp: &Path) -> Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "temp_store", "FILE")?;
    // SQLite has one temporary folder for all connections of a process, and guards it with a lock.
    connection.pragma_update(None, "temp_store_directory", temp.to_string_lossy())?;
    connection.pragma_update(Some("main"), "cache_size", -CACHE_KIB)?;
    connection.pragma_update(Some("temp"), "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "threads", SORTING_THREADS)?;
    Ok(connection)
}
