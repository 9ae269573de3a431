//! A connection that keeps little in memory and knows the tables and functions of a query.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Result};

/// What SQLite may keep of a table in memory, and how much it sorts at once.
const CACHE_KIB: i32 = 8 * 1024;

/// Threads that sort what was read while more is read. They compare bytes, and call nothing of ours.
const SORTING_THREADS: i32 = 2;

/// Opens a connection of its own, whose temporary files are in `temp`.
pub(crate) fn connect(temp: &Path) -> Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "temp_store", "FILE")?;
    // SQLite has one folder for all connections of a process and guards it with a lock.
    connection.pragma_update(None, "temp_store_directory", temp.to_string_lossy())?;
    connection.pragma_update(Some("main"), "cache_size", -CACHE_KIB)?;
    connection.pragma_update(Some("temp"), "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "threads", SORTING_THREADS)?;
    Ok(connection)
}
