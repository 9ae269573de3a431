//! Decodes the next batch of a row group while rows are made of the last one.

use std::sync::Arc;

use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::errors::ParquetError;

use super::batch::DecodedBatch;
use super::batch_maker::BatchMaker;
use super::problems::catch_decoder_panic;
use crate::read_ahead::{AheadSettings, ReadAhead};

/// The first batch may be all that is needed, so it is decoded by the caller. With the one that waits, the
/// one being decoded and the one in use there are three.
const SETTINGS: AheadSettings = AheadSettings { thread: "rowmill-decode", first: 1, waiting: 1 };

/// Whether rows may be written before they are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteAhead {
    Yes,
    No,
}

/// The batches of a row group.
pub(super) type BatchReader = ReadAhead<DecodedBatch, ParquetError>;

pub(super) fn decode_ahead(
    mut reader: ParquetRecordBatchReader,
    maker: Arc<BatchMaker>,
    writing: WriteAhead,
) -> BatchReader {
    ReadAhead::new(SETTINGS, move || {
        catch_decoder_panic(|| {
            let Some(decoded) = reader.next().transpose()? else { return Ok(None) };
            let batch = maker.batch(&decoded)?;
            Ok(Some(if writing == WriteAhead::Yes { batch } else { batch.without_write_ahead() }))
        })
    })
}
