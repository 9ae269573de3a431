//! CSV and TSV: delimited values, quoted as in RFC 4180.

use std::io::{self, Write};
use std::sync::Arc;

use super::cells::{Envelope, plain};
use super::columns::Columns;
use super::writer::RowWriter;

/// Writes a header and a record per row.
///
/// Texts are written unchanged, even if a spreadsheet would take them for formulas.
pub(super) struct DelimitedWriter<W: Write> {
    out: csv::Writer<W>,
    columns: Arc<Columns>,
}

impl<W: Write> DelimitedWriter<W> {
    pub(super) fn new(delimiter: u8, columns: Arc<Columns>, out: W) -> io::Result<Self> {
        let mut out = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
        out.write_record(columns.list.iter().map(|column| &column.name))?;
        Ok(Self { out, columns })
    }
}

impl<W: Write> RowWriter for DelimitedWriter<W> {
    fn row(&mut self, envelope: &Envelope<'_>, _: &[u8]) -> io::Result<()> {
        for cell in self.columns.cells(envelope) {
            self.out.write_field(plain(cell.unwrap_or("null")).as_bytes())?;
        }
        self.out.write_record(None::<&[u8]>)?;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
