//! Stands in for Parquet tables in a build without them.

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::Arc;

use rowmill_types::CargoFeature;

use super::cells::EnvelopeParts;
use super::columns::OutputColumns;
use super::writer::TableRowWriter;

/// Cannot exist: this build cannot write Parquet.
pub(super) struct ParquetWriter(Infallible);

impl ParquetWriter {
    /// Always an error.
    pub(super) fn new(_columns: Arc<OutputColumns>, _out: impl Write + Send) -> io::Result<Self> {
        Err(io::Error::other(CargoFeature::Parquet.missing_text()))
    }
}

impl TableRowWriter for ParquetWriter {
    fn write_row(&mut self, _envelope: &EnvelopeParts<'_>, _line: &[u8]) -> io::Result<()> {
        match self.0 {}
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        match self.0 {}
    }
}
