//! SQL over streams of rows: a safe door to SQLite's virtual tables.
