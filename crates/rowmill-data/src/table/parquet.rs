//! Parquet with typed columns.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::cells::EnvelopeParts;
use super::columns::OutputColumns;
use super::vectors::{ColumnVector, data_type};
use super::writer::TableRowWriter;

/// Rows are passed to the encoder in batches of this many rows, or of this many bytes of JSON.
const BATCH_ROWS: usize = 4_096;
const BATCH_BYTES: usize = 4 << 20;

/// A row group stays in memory until it is written, so both limit the memory for a table.
const GROUP_ROWS: usize = 1 << 20;
const GROUP_BYTES: usize = 32 << 20;

/// Writes typed columns.
pub(super) struct ParquetWriter<W: Write + Send> {
    out: ArrowWriter<W>,
    columns: Arc<OutputColumns>,
    schema: SchemaRef,
    vectors: Vec<ColumnVector>,
    rows: usize,
    bytes: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    pub(super) fn new(columns: Arc<OutputColumns>, out: W) -> io::Result<Self> {
        let fields =
            columns.list.iter().map(|column| Field::new(&column.name, data_type(&column.kind), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_created_by(concat!("rowmill ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let out = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(io::Error::other)?;
        let vectors = columns.list.iter().map(|column| ColumnVector::new(&column.kind)).collect();
        Ok(Self { out, columns, schema, vectors, rows: 0, bytes: 0 })
    }

    fn write_batch(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let arrays = self.vectors.iter_mut().map(ColumnVector::take).collect::<Result<Vec<_>, _>>();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays.map_err(io::Error::other)?)
            .map_err(io::Error::other)?;
        self.out.write(&batch).map_err(write_error)?;
        if self.out.memory_size().max(self.out.in_progress_size()) > GROUP_BYTES {
            self.out.flush().map_err(write_error)?;
        }
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

impl<W: Write + Send> TableRowWriter for ParquetWriter<W> {
    fn write_row(&mut self, envelope: &EnvelopeParts<'_>, line: &[u8]) -> io::Result<()> {
        for (vector, cell) in self.vectors.iter_mut().zip(self.columns.cells(envelope)) {
            vector.push(cell);
        }
        self.rows += 1;
        self.bytes += line.len();
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES { self.write_batch() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_batch()?;
        self.out.finish().map(drop).map_err(write_error)
    }
}

/// Keeps the system's error, so that a full disk is reported as such.
fn write_error(error: parquet::errors::ParquetError) -> io::Error {
    match error {
        parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}
