//! Where results go and what they look like, as given.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use rowmill::wording::settings::OUTPUT;
use rowmill::{OutputTarget, Problem, ProblemCode, TableFormat, TableLayout, TableOutput, TableTarget};

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct OutputFlags {
    /// Where to write the results, in input order; `-` for standard output.
    ///
    /// A name ending in `.csv`, `.tsv` or `.parquet` produces a table when the run ends; any other
    /// name gets envelopes as JSON Lines, row by row.
    #[arg(long, short, value_name = "FILE", help_heading = "Results")]
    pub(crate) output: Option<PathBuf>,

    /// Output format, if it cannot be determined from the file name: jsonl, csv, tsv or parquet.
    #[arg(long, value_name = "FORMAT", value_parser = table_format, help_heading = "Results")]
    pub(crate) output_format: Option<TableFormat>,

    /// Merge the fields of the result into those of the input row.
    ///
    /// If names clash, the result field keeps the name and the input field becomes `input_NAME`.
    /// The fields of the envelope are named `_id`, `_row_number`, `_ok`, `_error_type` and
    /// `_error_message`.
    #[arg(long, help_heading = "Results")]
    pub(crate) flatten: bool,

    /// Write one file for each value of `--split-by` into this folder.
    #[arg(long, value_name = "FOLDER", requires = "split_by", help_heading = "Results")]
    pub(crate) output_dir: Option<PathBuf>,

    /// Field whose values name the files in `--output-dir`, such as `result.label` or `input.lang`.
    #[arg(long, value_name = "FIELD", help_heading = "Results")]
    pub(crate) split_by: Option<String>,
}

impl OutputFlags {
    /// Where a run puts its results; standard output where nothing is said.
    pub(crate) fn output(self) -> Result<OutputTarget, Problem> {
        let table = self.table()?;
        let plain = table.format == TableFormat::Jsonl && table.layout == TableLayout::Envelope;
        Ok(match table {
            TableOutput { target: TableTarget::Stdout, .. } if plain => OutputTarget::Stdout,
            TableOutput { target: TableTarget::File(path), .. } if plain => OutputTarget::File(path),
            table => OutputTarget::Table(table),
        })
    }

    /// The table that the flags describe, whatever its format.
    pub(crate) fn table(self) -> Result<TableOutput, Problem> {
        if self.split_by.is_some() && self.output_dir.is_none() {
            return Err(Problem::new(ProblemCode::Usage, "--split-by requires --output-dir"));
        }
        let layout = if self.flatten { TableLayout::Flat } else { TableLayout::Envelope };
        let (target, format) = match (self.output, self.output_dir, self.split_by) {
            (_, Some(path), Some(split_by)) => (TableTarget::Folder { path, split_by }, TableFormat::Jsonl),
            (Some(path), ..) if ![Path::new("-"), Path::new("/dev/stdout")].contains(&path.as_path()) => {
                let format = format_of(&path, self.output_format)?;
                (TableTarget::File(path), format)
            }
            _ => (TableTarget::Stdout, TableFormat::Jsonl),
        };
        let format = self.output_format.unwrap_or(format);
        let table = TableOutput { target, format, layout };
        check_terminal(&OutputTarget::Table(table.clone()))?;
        Ok(table)
    }
}

/// Refuses what nobody can read on a screen.
pub(crate) fn check_terminal(output: &OutputTarget) -> Result<(), Problem> {
    let is_parquet =
        |table: &TableOutput| table.target == TableTarget::Stdout && table.format == TableFormat::Parquet;
    if matches!(output, OutputTarget::Table(table) if is_parquet(table)) && std::io::stdout().is_terminal() {
        return Err(Problem::new(ProblemCode::Usage, "cannot write Parquet to a terminal")
            .hint(format!("redirect standard output to a file, or name one with {OUTPUT}")));
    }
    Ok(())
}

/// The format that a name tells. Files are never compressed as a whole.
fn format_of(path: &Path, named: Option<TableFormat>) -> Result<TableFormat, Problem> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    if named.is_none() && matches!(ending.as_deref(), Some("gz" | "gzip" | "zst" | "zstd")) {
        let message = format!(
            "`{}` has the extension of a compressed file, but outputs are not compressed",
            path.display()
        );
        return Err(Problem::new(ProblemCode::Usage, message).hint(
            "remove the last extension; Parquet is already compressed, and `-o - | gzip` compresses other formats",
        ));
    }
    if named.is_none() && matches!(ending.as_deref(), Some("xlsx" | "xls" | "xlsm" | "ods")) {
        let message = format!(
            "`{}` has the extension of a spreadsheet, which is not a supported output format",
            path.display()
        );
        return Err(Problem::new(ProblemCode::Usage, message)
            .hint("use a name that ends in `.csv`, which spreadsheet programs can open, or in `.parquet`"));
    }
    Ok(TableFormat::of_name(&name))
}

/// The name of a format.
fn table_format(text: &str) -> Result<TableFormat, String> {
    let known = TableFormat::ALL.iter().find(|format| format.name().eq_ignore_ascii_case(text));
    known.copied().ok_or_else(|| "must be jsonl, csv, tsv or parquet".to_owned())
}
