//! Flags that choose what of the input is seen, and which files go with its rows.

use std::path::PathBuf;

use clap::Args;
use rowmill::{
    AttachmentOptions, ColumnTypeSetting, DocumentIdRule, FieldDelimiter, InputQuery, Problem, RemovedRows,
    SqlEngine,
};

use crate::resolve::usage_problem;

/// How queries read the input.
#[derive(Debug, Args)]
pub(crate) struct SqlFlags {
    /// Column types for `--sql` and `--where`, such as `zip=text,price=decimal(10,2)`.
    ///
    /// By default, the types of CSV and JSON columns are inferred from the first 20,480 rows.
    /// Values that are only passed through keep their original text.
    #[arg(long, value_name = "COLUMN=TYPE,…", value_parser = column_types, help_heading = "Rows")]
    types: Option<ColumnTypes>,

    /// Engine that runs `--sql`: `builtin`, or `duckdb` for your own DuckDB [default: builtin].
    ///
    /// DuckDB can be installed as a program or as a Python package.
    #[arg(long, value_name = "builtin|duckdb", value_parser = ["builtin", "duckdb"], help_heading = "Rows")]
    sql_engine: Option<String>,
}

/// The types that `--types` names.
#[derive(Debug, Clone)]
struct ColumnTypes(Vec<ColumnTypeSetting>);

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
        Some(ColumnTypeSetting { column: column.trim().to_owned(), type_name: type_name.trim().to_owned() })
    };
    let types = parts.iter().map(|part| typed(part).ok_or_else(|| format!("`{part}` is not `column=type`")));
    types.collect::<Result<_, _>>().map(ColumnTypes)
}

impl SqlFlags {
    /// Checks the flags against the query that they are for.
    pub(crate) fn check(&self, sql: Option<&str>, condition: Option<&str>) -> Result<(), Problem> {
        if self.types.is_some() && sql.is_none() && condition.is_none() {
            return Err(usage_problem("--types requires --sql or --where".to_owned())
                .hint("add `--sql` or `--where`, or remove `--types`"));
        }
        if self.engine() == SqlEngine::DuckDb && sql.is_none() {
            return Err(usage_problem("--sql-engine duckdb requires --sql".to_owned())
                .hint("add `--sql`; `--where` always runs on the built-in engine"));
        }
        Ok(())
    }

    pub(crate) fn column_types(&self) -> Vec<ColumnTypeSetting> {
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
    /// Run a single SELECT over the view `input` and process its result.
    ///
    /// Row numbers are then positions in the result; use `--id-field` so that a resume can match
    /// rows even if the input changes.
    #[arg(long, value_name = "QUERY", help_heading = "Rows")]
    sql: Option<String>,

    /// Process only rows that satisfy this condition, such as `split = 'eval'`.
    ///
    /// The rows keep their numbers.
    #[arg(long = "where", value_name = "CONDITION", help_heading = "Rows")]
    condition: Option<String>,

    /// Keep only these fields of each row, in this order.
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Rows")]
    columns: Vec<String>,

    /// Delimiter of CSV or TSV input: one character, or `tab`; detected from the header by default.
    #[arg(long, value_name = "CHARACTER", value_parser = FieldDelimiter::parse, help_heading = "Rows")]
    delimiter: Option<FieldDelimiter>,

    #[command(flatten)]
    sql_flags: SqlFlags,

    /// How files in a folder are identified: by `path`, or by `content` [default: path].
    ///
    /// With `content`, files that were moved or copied are not processed again.
    #[arg(long, value_name = "path|content", value_parser = ["path", "content"], conflicts_with = "id_field", help_heading = "Rows")]
    id: Option<String>,

    /// Output rows that are no longer in the input: `keep` or `drop` them [default: keep].
    ///
    /// For `--resume` with `--id-field`. Rows that are kept move to the end of the output.
    #[arg(long, value_name = "keep|drop", value_parser = ["keep", "drop"], requires = "resume", help_heading = "Rows")]
    removed_rows: Option<String>,

    /// Send the file that this field names along with the row; repeatable.
    ///
    /// The field holds a path or a list of paths. If the input is a folder or a pattern of
    /// documents, the file itself is sent without this flag.
    #[arg(long, value_name = "FIELD", help_heading = "Files")]
    attach: Vec<String>,

    /// Send the text of PDF, DOCX and HTML files, for models that do not accept files.
    #[arg(long, value_name = "text", value_parser = ["text"], help_heading = "Files")]
    extract: Option<String>,

    /// Folder for copies of all files that are sent to the model, named by their digests.
    #[arg(long, value_name = "FOLDER", help_heading = "Files")]
    archive_inputs: Option<PathBuf>,
}

impl DataFlags {
    /// Checks flags against each other.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if !self.columns.is_empty() && self.columns.iter().all(|name| name.trim().is_empty()) {
            let message = format!("`--columns {}` names no column", self.columns.join(","));
            return Err(usage_problem(message).hint(
                "separate names with commas, such as `--columns id,review`; `rowmill head INPUT` lists them",
            ));
        }
        self.sql_flags.check(self.sql.as_deref(), self.condition.as_deref())?;
        let others = [("--where", self.condition.is_some()), ("--columns", !self.columns.is_empty())];
        match others.iter().find(|(_, given)| self.sql.is_some() && *given) {
            Some((flag, _)) => Err(usage_problem(format!("--sql and {flag} cannot be used together"))
                .hint("write it in the query: `SELECT a, b FROM input WHERE …`")),
            None => Ok(()),
        }
    }

    pub(crate) fn document_ids(&self) -> DocumentIdRule {
        match self.id.as_deref() {
            Some("content") => DocumentIdRule::Content,
            _ => DocumentIdRule::Path,
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

    pub(crate) fn query(&self) -> InputQuery {
        InputQuery {
            sql: self.sql.clone(),
            condition: self.condition.clone(),
            columns: self.columns.clone(),
            types: self.sql_flags.column_types(),
            engine: self.sql_flags.engine(),
        }
    }

    pub(crate) fn files(&self) -> AttachmentOptions {
        AttachmentOptions {
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
