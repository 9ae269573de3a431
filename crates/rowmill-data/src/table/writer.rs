//! Writing rows one after the other, whatever the format.

use std::io::Write;
use std::sync::Arc;

use super::cells::Envelope;
use super::columns::Columns;
use super::delimited::DelimitedWriter;
use super::jsonl::{EnvelopeWriter, FlatWriter};
use super::parquet::ParquetWriter;
use super::{Layout, TableFormat, TableSettings};

/// Takes rows. Memory does not grow with their number.
pub(super) trait RowWriter {
    /// Takes a row; `line` is its envelope as it was read.
    fn row(&mut self, envelope: &Envelope<'_>, line: &[u8]) -> std::io::Result<()>;

    /// Writes what is left. Only then is the table complete.
    fn finish(self: Box<Self>) -> std::io::Result<()>;
}

/// A writer for the format and layout of the settings.
pub(super) fn writer<'w>(
    settings: &TableSettings,
    columns: &Arc<Columns>,
    out: impl Write + Send + 'w,
) -> std::io::Result<Box<dyn RowWriter + 'w>> {
    Ok(match (settings.format, settings.layout) {
        (TableFormat::Jsonl, Layout::Envelope) => Box::new(EnvelopeWriter::new(settings.input, out)),
        (TableFormat::Jsonl, Layout::Flat) => Box::new(FlatWriter::new(columns.clone(), out)),
        (TableFormat::Csv, _) => Box::new(DelimitedWriter::new(b',', columns.clone(), out)?),
        (TableFormat::Tsv, _) => Box::new(DelimitedWriter::new(b'\t', columns.clone(), out)?),
        (TableFormat::Parquet, _) => Box::new(ParquetWriter::new(columns.clone(), out)?),
    })
}
