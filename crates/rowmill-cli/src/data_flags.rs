//! Flags that choose what of the input is seen, and which files go with its rows.

use std::path::PathBuf;

use clap::Args;
use rowmill::{ColumnType, DocumentIds, FieldDelimiter, FileFlags, Problem, Query, RemovedRows, SqlEngine};

use crate::resolve::usage;

/// How queries read the input.
#[derive(Debug, Args)]
pub(crate) struct SqlFlags {
    /// The types of columns for `--sql` and `--where`, such as `zip=text,price=decimal(10,2)`.
    ///
    /// Columns of CSV and JSON otherwise have the types of their first 20,480 rows. Values that
    /// are only passed on stay as they are.
    #[arg(long, value_name = "COLUMN=TYPE,…", value_parser = column_types, help_heading = "Rows")]
    types: Option<ColumnTypes>,

    /// What runs the query of `--sql`: the engine that is built in, or your own DuckDB, its program or
    /// its Python package [default: builtin].
    #[arg(long, value_name = "builtin|duckdb", value_parser = ["builtin", "duckdb"], help_heading = "Rows")]
    sql_engine: Option<String>,
}

/// The types that `--types` names.
#[derive(Debug, Clone)]
struct ColumnTypes(Vec<ColumnType>);

/// Reads `a=text,b=decimal(10,2)`: commas in brackets do not divide.
fn column_types(text: &str) -> Result<ColumnTypes, String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for letter in text.chars() {
        match letter {
            ',' if depth == 0 => parts.push(String::new()),
            _ => {
                depth = match letter {
                    '(' => depth + 1,
                    ')' => depth.saturating_sub(1),
                    _ => depth,
                };
                if let Some(part) = parts.last_mut() {
                    part.push(letter);
                }
            }
        }
    }
    let typed = |part: &String| {
        let (column, type_name) =
            part.split_once('=').filter(|(column, kind)| !column.is_empty() && !kind.is_empty())?;
        Some(ColumnType { column: column.trim().to_owned(), type_name: type_name.trim().to_owned() })
    };
    let types = parts.iter().map(|part| typed(part).ok_or_else(|| format!("`{part}` is not `column=type`")));
    types.collect::<Result<_, _>>().map(ColumnTypes)
}

impl SqlFlags {
    /// Checks the flags against the query that they are for.
    pub(crate) fn check(&self, sql: Option<&str>, condition: Option<&str>) -> Result<(), Problem> {
        if self.types.is_some() && sql.is_none() && condition.is_none() {
            return Err(usage("--types is for queries, and there is none".to_owned())
                .hint("give `--sql` or `--where`, or leave it out"));
        }
        if self.engine() == SqlEngine::DuckDb && sql.is_none() {
            return Err(usage("--sql-engine duckdb runs the query of --sql, and there is none".to_owned())
                .hint("give `--sql`; `--where` is always looked at by the built-in engine"));
        }
        Ok(())
    }

    pub(crate) fn column_types(&self) -> Vec<ColumnType> {
        self.types.as_ref().map(|ColumnTypes(types)| types.clone()).unwrap_or_default()
    }

    pub(crate) fn engine(&self) -> SqlEngine {
        match self.sql_engine.as_deref() {
            Some("duckdb") => SqlEngine::DuckDb,
            _ => SqlEngine::BuiltIn,
        }
    }
}

/// What of the input is seen, and which files go with its rows.
#[derive(Debug, Args)]
pub(crate) struct DataFlags {
    /// A single SELECT over the view `input`, whose result is what the run works on.
    ///
    /// Row numbers are then places in the result; give `--id-field` so that a resume knows
    /// rows again whatever happens to the input.
    #[arg(long, value_name = "QUERY", help_heading = "Rows")]
    sql: Option<String>,

    /// Take only rows that satisfy this condition, such as `split = 'eval'`; they keep their numbers.
    #[arg(long = "where", value_name = "CONDITION", help_heading = "Rows")]
    condition: Option<String>,

    /// Keep only these fields of a row, in this order.
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Rows")]
    columns: Vec<String>,

    /// What stands between the values of a CSV or TSV input: one character, or `tab`; without it, the
    /// header tells.
    #[arg(long, value_name = "CHARACTER", value_parser = FieldDelimiter::parse, help_heading = "Rows")]
    delimiter: Option<FieldDelimiter>,

    #[command(flatten)]
    sql_flags: SqlFlags,

    /// What names a file of a folder: its `path`, or its `content`, so that a file that was
    /// moved or copied is not worked on again [default: path].
    #[arg(long, value_name = "path|content", value_parser = ["path", "content"], conflicts_with = "id_field", help_heading = "Rows")]
    id: Option<String>,

    /// With `--resume` and `--id-field`: what becomes of rows in the output that are not in the input any
    /// more. They are kept at its end, or dropped from it [default: keep].
    #[arg(long, value_name = "keep|drop", value_parser = ["keep", "drop"], requires = "resume", help_heading = "Rows")]
    removed_rows: Option<String>,

    /// Send the file that this field names with the row; can be repeated.
    ///
    /// The field holds a path, or a list of paths. Where the input is a folder or a pattern of
    /// documents, the file itself is sent without this flag.
    #[arg(long, value_name = "FIELD", help_heading = "Files")]
    attach: Vec<String>,

    /// Send the `text` of PDF, DOCX and HTML files instead of the files, for models that take none.
    #[arg(long, value_name = "text", value_parser = ["text"], help_heading = "Files")]
    extract: Option<String>,

    /// Keep every file that was sent in this folder, by its content.
    #[arg(long, value_name = "FOLDER", help_heading = "Files")]
    archive_inputs: Option<PathBuf>,
}

impl DataFlags {
    /// Checks flags against each other.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if !self.columns.is_empty() && self.columns.iter().all(|name| name.trim().is_empty()) {
            let message = format!("`--columns {}` names no column", self.columns.join(","));
            return Err(usage(message)
                .hint("give names with commas between them, such as `--columns id,review`; `rowmill head INPUT` shows them"));
        }
        self.sql_flags.check(self.sql.as_deref(), self.condition.as_deref())?;
        let others = [("--where", self.condition.is_some()), ("--columns", !self.columns.is_empty())];
        match others.iter().find(|(_, given)| self.sql.is_some() && *given) {
            Some((flag, _)) => Err(usage(format!("--sql and {flag} cannot be used together"))
                .hint("say it in the query: `SELECT a, b FROM input WHERE …`")),
            None => Ok(()),
        }
    }

    pub(crate) fn document_ids(&self) -> DocumentIds {
        match self.id.as_deref() {
            Some("content") => DocumentIds::Content,
            _ => DocumentIds::Path,
        }
    }

    pub(crate) fn removed_rows(&self) -> RemovedRows {
        match self.removed_rows.as_deref() {
            Some("drop") => RemovedRows::Drop,
            _ => RemovedRows::Keep,
        }
    }

    pub(crate) fn delimiter(&self) -> Option<FieldDelimiter> {
        self.delimiter
    }

    pub(crate) fn query(&self) -> Query {
        Query {
            sql: self.sql.clone(),
            condition: self.condition.clone(),
            columns: self.columns.clone(),
            types: self.sql_flags.column_types(),
            engine: self.sql_flags.engine(),
        }
    }

    pub(crate) fn files(&self) -> FileFlags {
        FileFlags {
            attach: self.attach.clone(),
            extract_text: self.extract.is_some(),
            archive: self.archive_inputs.clone(),
            id_given: self.id.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_divided_at_commas_outside_of_brackets() {
        let ColumnTypes(types) = column_types("zip=text, price=decimal(10,2)").unwrap();
        let shown: Vec<_> = types.iter().map(|one| format!("{} is {}", one.column, one.type_name)).collect();
        assert_eq!(shown, ["zip is text", "price is decimal(10,2)"]);
        for wrong in ["", "zip", "zip=", "=text", "a=text,,b=text"] {
            assert!(column_types(wrong).is_err(), "{wrong}");
        }
    }
}
