//! Flags that choose what of the input is seen, and which files go with its rows.

use std::path::PathBuf;

use clap::Args;
use rowmill::{DocumentIds, FieldDelimiter, FileFlags, Problem, Query, RemovedRows};

use crate::resolve::usage;

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
        Query { sql: self.sql.clone(), condition: self.condition.clone(), columns: self.columns.clone() }
    }

    pub(crate) fn files(&self) -> FileFlags {
        FileFlags {
            attach: self.attach.clone(),
            extract_text: self.extract.is_some(),
            extractor: std::env::current_exe().ok().map(|program| (program, vec!["extract-text".into()])),
            archive: self.archive_inputs.clone(),
            id_given: self.id.is_some(),
        }
    }
}
