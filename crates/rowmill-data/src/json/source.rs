//! Makes rows from the items of an array.

use memchr::memchr_iter;
use rowmill_core::ports::{InputReadProgress, ReadLimit, RowSource};
use rowmill_types::settings::INPUT_FORMAT;
use rowmill_types::{Problem, ProblemCode, Row, RowErrorKind, RowReadResult};

use super::items::{ArrayItem, ArrayItemReader};
use crate::block_reader::{BlockReader, MAX_RECORD, ReadWait};
use crate::jsonl::JsonlRowSource;
use crate::record_placement::{RecordPlacement, RecordUnit, TextRowSource};

/// Reads one row per item of an array. Input that starts with an object is read as lines, because many tools
/// write those with the same extension.
#[derive(Debug)]
pub(crate) struct JsonRowSource {
    place: RecordPlacement,
    reader: SourceReader,
    damage: Option<Problem>,
}

#[derive(Debug)]
enum SourceReader {
    /// Nothing was read yet, or the input cannot be used.
    Unknown(Option<BlockReader>),
    Items(ArrayItemReader),
    Lines(JsonlRowSource),
}

impl JsonRowSource {
    pub(crate) fn new(blocks: BlockReader, place: RecordPlacement) -> Self {
        Self { place, reader: SourceReader::Unknown(Some(blocks)), damage: None }
    }

    /// Detects how the rows are written. Rows that were read on the way are appended to `batch`.
    fn begin(&mut self, batch: &mut Vec<RowReadResult>) -> Result<(), Problem> {
        let SourceReader::Unknown(unread) = &mut self.reader else { return Ok(()) };
        let Some(mut blocks) = unread.take() else { return Ok(()) };
        let mut lines = 0;
        let first = loop {
            let unused = blocks.unread_bytes();
            let space = unused.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
            lines += memchr_iter(b'\n', unused.get(..space).unwrap_or_default()).count() as u64;
            let first = unused.get(space).copied();
            blocks.consume(space);
            if first.is_some() || !blocks.fill()? {
                break first;
            }
        };
        let name = blocks.name().to_owned();
        match first {
            None | Some(b'[') => self.reader = SourceReader::Items(ArrayItemReader::new(blocks, MAX_RECORD)),
            Some(b'{') => {
                let mut source = JsonlRowSource::after(blocks, lines, self.place.clone());
                source.read(batch, ReadLimit { rows: 1, bytes: usize::MAX })?;
                if let Some(Err(bad)) = batch.last()
                    && bad.kind == RowErrorKind::InvalidJson
                {
                    let cause = bad.message.clone();
                    batch.pop();
                    return Err(neither(&name).cause(cause));
                }
                self.reader = SourceReader::Lines(source);
            }
            Some(_) => return Err(neither(&name)),
        }
        Ok(())
    }

    fn next_row(
        items: &mut ArrayItemReader,
        place: &RecordPlacement,
        wait: ReadWait,
    ) -> Result<NextRow, Problem> {
        let at = items.number() + 1;
        let bad = |kind, what: &str| NextRow::Row(Err(place.bad_row(RecordUnit::Item, at, kind, what)));
        Ok(match items.next(wait)? {
            ArrayItem::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => {
                    let row = Row::parse(place.number(at), text.to_owned());
                    NextRow::Row(row.map_err(|bad| place.bad_row_from_parser(RecordUnit::Item, at, bad)))
                }
                Err(error) => {
                    let what = format!("not valid UTF-8 at byte {}", error.valid_up_to() + 1);
                    bad(RowErrorKind::InvalidJson, &what)
                }
            },
            ArrayItem::TooLong => {
                bad(RowErrorKind::InvalidRow, &format!("longer than {} MiB", MAX_RECORD >> 20))
            }
            ArrayItem::Broken(what) => NextRow::Broken(what),
            ArrayItem::End => NextRow::End,
            ArrayItem::Pending => NextRow::Pending,
        })
    }
}

enum NextRow {
    Row(RowReadResult),
    /// Nothing after this point can be read, for this reason.
    Broken(String),
    End,
    Pending,
}

impl RowSource for JsonRowSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        let before = batch.len();
        self.begin(batch)?;
        let mut rows = batch.len() - before;
        let items = match &mut self.reader {
            SourceReader::Unknown(_) => return Ok(false),
            SourceReader::Lines(_) if rows > 0 => return Ok(true),
            SourceReader::Lines(lines) => return lines.read(batch, room),
            SourceReader::Items(items) => items,
        };
        let mut bytes = 0;
        loop {
            // As with lines, rows that have arrived are returned before waiting for more.
            let wait = if rows == 0 { ReadWait::UntilFound } else { ReadWait::No };
            let row = match Self::next_row(items, &self.place, wait)? {
                NextRow::Row(row) => row,
                NextRow::Broken(what) => {
                    let at = items.number();
                    self.damage = Some(RecordPlacement::damage(items.name(), RecordUnit::Item, at, &what));
                    Err(self.place.bad_row(RecordUnit::Item, at, RowErrorKind::InvalidJson, &what))
                }
                NextRow::End => return Ok(false),
                NextRow::Pending => return Ok(true),
            };
            bytes += row.as_ref().map_or(0, |row| row.json_text().len());
            batch.push(row);
            rows += 1;
            if rows >= room.rows || bytes >= room.bytes {
                return Ok(true);
            }
        }
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        if rows == 0 {
            return Ok(0);
        }
        let mut first = Vec::new();
        self.begin(&mut first)?;
        let mut passed = first.len() as u64;
        match &mut self.reader {
            SourceReader::Unknown(_) => {}
            SourceReader::Lines(lines) => passed += lines.skip(rows - passed)?,
            SourceReader::Items(items) => {
                while passed < rows && items.next(ReadWait::UntilFound)? != ArrayItem::End {
                    passed += 1;
                }
            }
        }
        Ok(passed)
    }

    fn damage(&self) -> Option<Problem> {
        match &self.reader {
            SourceReader::Lines(lines) => lines.damage(),
            SourceReader::Unknown(_) | SourceReader::Items(_) => self.damage.clone(),
        }
    }

    fn position(&self) -> InputReadProgress {
        match &self.reader {
            SourceReader::Unknown(blocks) => blocks.as_ref().map(BlockReader::position).unwrap_or_default(),
            SourceReader::Items(items) => items.position(),
            SourceReader::Lines(lines) => lines.position(),
        }
    }
}

impl TextRowSource for JsonRowSource {
    fn used_numbers(&self) -> u64 {
        match &self.reader {
            SourceReader::Unknown(_) => 0,
            SourceReader::Items(items) => items.number(),
            SourceReader::Lines(lines) => lines.used_numbers(),
        }
    }
}

fn neither(name: &str) -> Problem {
    let message = format!("input is neither a JSON list of objects nor one object per line: `{name}`");
    Problem::new(ProblemCode::InputFormat, message).hint(format!(
        "write the objects between `[` and `]`, or one per line; with {input_format}, a broken line becomes \
         one bad row",
        input_format = INPUT_FORMAT.with_value("jsonl")
    ))
}
