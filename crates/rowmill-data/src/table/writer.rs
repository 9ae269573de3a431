//! Writes rows one after the other, in any format.

use std::io::Write;
use std::sync::Arc;

use super::cells::EnvelopeParts;
use super::columns::OutputColumns;
use super::delimited::DelimitedWriter;
use super::jsonl::{EnvelopeWriter, FlatWriter};
use super::parquet::ParquetWriter;
use super::{TableExportSettings, TableFormat, TableLayout};

/// Accepts rows. Its memory does not grow with their number.
pub(super) trait TableRowWriter {
    /// Writes a row; `line` is its original envelope.
    fn write_row(&mut self, envelope: &EnvelopeParts<'_>, line: &[u8]) -> std::io::Result<()>;

    /// Writes the rest. Only then is the table complete.
    fn finish(self: Box<Self>) -> std::io::Result<()>;
}

/// A writer for the format and layout of the settings.
pub(super) fn table_row_writer<'w>(
    settings: &TableExportSettings,
    columns: &Arc<OutputColumns>,
    out: impl Write + Send + 'w,
) -> std::io::Result<Box<dyn TableRowWriter + 'w>> {
    Ok(match (settings.format, settings.layout) {
        (TableFormat::Jsonl, TableLayout::Envelope) => Box::new(EnvelopeWriter::new(settings.input, out)),
        (TableFormat::Jsonl, TableLayout::Flat) => Box::new(FlatWriter::new(columns.clone(), out)),
        (TableFormat::Csv, _) => Box::new(DelimitedWriter::new(b',', columns.clone(), out)?),
        (TableFormat::Tsv, _) => Box::new(DelimitedWriter::new(b'\t', columns.clone(), out)?),
        (TableFormat::Parquet, _) => Box::new(ParquetWriter::new(columns.clone(), out)?),
    })
}
