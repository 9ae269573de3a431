//! Decoding the next batch of a row group while rows are made of the last one.

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::errors::ParquetError;

use super::problems::guarded;
use crate::read_ahead::{AheadSettings, ReadAhead};

/// Batches of a row group, decoded ahead. The first one may be all that is wanted, so it is decoded by whoever
/// asks; with the one that waits, the one that is decoded and the one that is in use there are three.
const SETTINGS: AheadSettings = AheadSettings { thread: "rowmill-decode", first: 1, waiting: 1 };

/// The batches of a row group.
pub(super) type BatchReader = ReadAhead<RecordBatch, ParquetError>;

pub(super) fn batches(mut reader: ParquetRecordBatchReader) -> BatchReader {
    ReadAhead::new(SETTINGS, move || guarded(|| Ok(reader.next().transpose()?)))
}
