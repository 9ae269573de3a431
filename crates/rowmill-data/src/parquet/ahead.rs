//! Decoding the next batch of a row group while rows are made of the last one.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::errors::Result as Decoded;

use super::problems::guarded;

/// Batches that wait to be taken; with the one that is decoded and the one that is in use there are three.
const WAITING: usize = 1;

/// Decodes the rows of one group, batch by batch.
pub(super) struct BatchReader {
    state: State,
}

enum State {
    /// Nothing is decoded yet. The first batch may be all that is wanted, so it is decoded by whoever asks.
    New(ParquetRecordBatchReader),
    /// One batch is decoded; the next makes it worth a thread.
    Begun(ParquetRecordBatchReader),
    /// A thread decodes. It ends when nobody takes its batches any more.
    Ahead(Receiver<Decoded<RecordBatch>>),
    /// No thread could be started.
    Alone(ParquetRecordBatchReader),
    Ended,
}

impl BatchReader {
    pub(super) fn new(reader: ParquetRecordBatchReader) -> Self {
        Self { state: State::New(reader) }
    }

    /// The next batch, `None` after the last. After an error there is none.
    pub(super) fn next_batch(&mut self) -> Decoded<Option<RecordBatch>> {
        let (next, state) = match std::mem::replace(&mut self.state, State::Ended) {
            State::New(mut reader) => (decode(&mut reader)?, State::Begun(reader)),
            State::Begun(reader) => {
                self.state = ahead(reader);
                return self.next_batch();
            }
            State::Alone(mut reader) => (decode(&mut reader)?, State::Alone(reader)),
            State::Ahead(batches) => (batches.recv().ok().transpose()?, State::Ahead(batches)),
            State::Ended => return Ok(None),
        };
        if next.is_some() {
            self.state = state;
        }
        Ok(next)
    }
}

/// Has a thread decode what is left, or nobody where there can be no more threads.
fn ahead(reader: ParquetRecordBatchReader) -> State {
    let (sender, batches) = sync_channel(WAITING);
    let shared = Arc::new(Mutex::new(Some(reader)));
    let taken = Arc::clone(&shared);
    let work = move || {
        let Some(mut reader) = taken.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        while let Some(next) = decode(&mut reader).transpose() {
            let failed = next.is_err();
            if sender.send(next).is_err() || failed {
                return;
            }
        }
    };
    if thread::Builder::new().name("rowmill-decode".into()).spawn(work).is_ok() {
        return State::Ahead(batches);
    }
    let left = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    left.map_or(State::Ended, State::Alone)
}

fn decode(reader: &mut ParquetRecordBatchReader) -> Decoded<Option<RecordBatch>> {
    guarded(|| Ok(reader.next().transpose()?))
}
