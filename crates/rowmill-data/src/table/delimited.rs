//! CSV and TSV: delimited values, quoted as in RFC 4180.

use std::io::{self, Write};
use std::sync::Arc;

use super::cells::{EnvelopeParts, plain_text};
use super::columns::OutputColumns;
use super::writer::TableRowWriter;

/// Writes a header and a record per row.
///
/// Texts are written unchanged, even if a spreadsheet would take them for formulas.
pub(super) struct DelimitedWriter<W: Write> {
    out: csv::Writer<W>,
    columns: Arc<OutputColumns>,
}

impl<W: Write> DelimitedWriter<W> {
    pub(super) fn new(delimiter: u8, columns: Arc<OutputColumns>, out: W) -> io::Result<Self> {
        let mut out = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
        out.write_record(columns.list.iter().map(|column| &column.name))?;
        Ok(Self { out, columns })
    }
}

impl<W: Write> TableRowWriter for DelimitedWriter<W> {
    fn write_row(&mut self, envelope: &EnvelopeParts<'_>, _: &[u8]) -> io::Result<()> {
        for cell in self.columns.cells(envelope) {
            self.out.write_field(plain_text(cell.unwrap_or("null")).as_bytes())?;
        }
        self.out.write_record(None::<&[u8]>)?;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
