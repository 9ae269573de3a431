//! Reads several files one after the other as one input.

use std::fs;
use std::vec;

use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_types::{Problem, RowReadResult};

use crate::record_placement::{RecordPlacement, TextRowSource};
use crate::text_dataset::{TextFormat, open_blocks, text_row_source};
use crate::{FileList, InputFile, PartitionField};

/// The rows of one or more files. Row numbers continue from file to file; if there are several, messages
/// about a bad row name its file.
pub(crate) struct FilesRowSource {
    format: TextFormat,
    several: bool,
    waiting: vec::IntoIter<InputFile>,
    open: Option<OpenInputFile>,
    /// How many row numbers the previous files used.
    numbers: u64,
    /// How many bytes they had.
    bytes: u64,
    total: Option<u64>,
}

struct OpenInputFile {
    source: Box<dyn TextRowSource>,
    size: u64,
    partition: Vec<PartitionField>,
}

impl FilesRowSource {
    /// Opens the first file; the others are opened in turn.
    pub(crate) fn open(list: &FileList, format: &TextFormat) -> Result<Self, Problem> {
        let sizes = list.files.iter().map(|file| fs::metadata(&file.path).ok().map(|found| found.len()));
        let mut source = Self {
            format: format.clone(),
            several: list.files.len() > 1,
            waiting: list.files.clone().into_iter(),
            open: None,
            numbers: 0,
            bytes: 0,
            total: sizes.sum(),
        };
        source.open_next()?;
        Ok(source)
    }

    /// Opens the next file; `false` after the last one.
    fn open_next(&mut self) -> Result<bool, Problem> {
        if let Some(ended) = self.open.take() {
            self.numbers += ended.source.used_numbers();
            self.bytes += ended.size;
        }
        let Some(file) = self.waiting.next() else { return Ok(false) };
        let blocks = open_blocks(&file)?;
        let size = blocks.position().total.unwrap_or(0);
        let InputFile { name, partition, .. } = file;
        let place = RecordPlacement { before: self.numbers, file: self.several.then_some(name) };
        let source = text_row_source(&self.format, blocks, place)?;
        self.open = Some(OpenInputFile { source, size, partition });
        Ok(true)
    }

    fn has_waiting(&self) -> bool {
        !self.waiting.as_slice().is_empty()
    }
}

impl RowSource for FilesRowSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let before = batch.len();
        while let Some(open) = &mut self.open {
            let read = batch.len();
            let more = open.source.read(batch, room)?;
            if !open.partition.is_empty() {
                let rows = batch.iter_mut().skip(read).flatten();
                rows.for_each(|row| {
                    *row = row.with_added_fields(open.partition.iter().map(PartitionField::pair))
                });
            }
            if more || !self.has_waiting() {
                return Ok(more);
            }
            // A file that cannot be opened must not discard the rows before it.
            if batch.len() > before {
                return Ok(true);
            }
            self.open_next()?;
        }
        Ok(false)
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        let mut passed = 0;
        while let Some(open) = &mut self.open {
            passed += open.source.skip(rows - passed)?;
            if passed == rows || !self.has_waiting() {
                break;
            }
            self.open_next()?;
        }
        Ok(passed)
    }

    fn damage(&self) -> Option<Problem> {
        self.open.as_ref()?.source.damage()
    }

    fn position(&self) -> InputReadProgress {
        let read = self.open.as_ref().map_or(0, |open| open.source.position().read);
        InputReadProgress { read: self.bytes + read, total: self.total }
    }
}
