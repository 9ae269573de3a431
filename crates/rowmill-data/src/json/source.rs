//! Makes rows from the items of an array.

use memchr::memchr_iter;
use rowmill_core::ports::{Position, Room, RowSource};
use rowmill_types::settings::INPUT_FORMAT;
use rowmill_types::{ErrorKind, Problem, ProblemCode, Row, SourceRow};

use super::items::{Item, Items};
use crate::blocks::{Blocks, MAX_RECORD, Wait};
use crate::jsonl::JsonlSource;
use crate::place::{Place, TextSource, Unit};

/// Reads one row per item of an array. Input that starts with an object is read as lines, because many tools
/// write those with the same extension.
#[derive(Debug)]
pub(crate) struct JsonSource {
    place: Place,
    reader: Reader,
    damage: Option<Problem>,
}

#[derive(Debug)]
enum Reader {
    /// Nothing was read yet, or the input cannot be used.
    Unknown(Option<Blocks>),
    Items(Items),
    Lines(JsonlSource),
}

impl JsonSource {
    pub(crate) fn new(blocks: Blocks, place: Place) -> Self {
        Self { place, reader: Reader::Unknown(Some(blocks)), damage: None }
    }

    /// Detects how the rows are written. Rows that were read on the way are appended to `batch`.
    fn begin(&mut self, batch: &mut Vec<SourceRow>) -> Result<(), Problem> {
        let Reader::Unknown(unread) = &mut self.reader else { return Ok(()) };
        let Some(mut blocks) = unread.take() else { return Ok(()) };
        let mut lines = 0;
        let first = loop {
            let unused = blocks.unused();
            let space = unused.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
            lines += memchr_iter(b'\n', unused.get(..space).unwrap_or_default()).count() as u64;
            let first = unused.get(space).copied();
            blocks.use_up(space);
            if first.is_some() || !blocks.fill()? {
                break first;
            }
        };
        let name = blocks.name().to_owned();
        match first {
            None | Some(b'[') => self.reader = Reader::Items(Items::new(blocks, MAX_RECORD)),
            Some(b'{') => {
                let mut source = JsonlSource::after(blocks, lines, self.place.clone());
                source.read(batch, Room { rows: 1, bytes: usize::MAX })?;
                if let Some(Err(bad)) = batch.last()
                    && bad.kind == ErrorKind::InvalidJson
                {
                    let cause = bad.message.clone();
                    batch.pop();
                    return Err(neither(&name).cause(cause));
                }
                self.reader = Reader::Lines(source);
            }
            Some(_) => return Err(neither(&name)),
        }
        Ok(())
    }

    fn next_row(items: &mut Items, place: &Place, wait: Wait) -> Result<Next, Problem> {
        let at = items.number() + 1;
        let bad = |kind, what: &str| Next::Row(Err(place.bad(Unit::Item, at, kind, what)));
        Ok(match items.next(wait)? {
            Item::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => {
                    let row = Row::parse(place.number(at), text.to_owned());
                    Next::Row(row.map_err(|bad| place.parsed(Unit::Item, at, bad)))
                }
                Err(error) => {
                    let what = format!("not valid UTF-8 at byte {}", error.valid_up_to() + 1);
                    bad(ErrorKind::InvalidJson, &what)
                }
            },
            Item::TooLong => bad(ErrorKind::InvalidRow, &format!("longer than {} MiB", MAX_RECORD >> 20)),
            Item::Broken(what) => Next::Broken(what),
            Item::End => Next::End,
            Item::Pending => Next::Pending,
        })
    }
}

enum Next {
    Row(SourceRow),
    /// Nothing after this point can be read, for this reason.
    Broken(String),
    End,
    Pending,
}

impl RowSource for JsonSource {
    fn read(&mut self, batch: &mut Vec<SourceRow>, room: Room) -> Result<bool, Problem> {
        let before = batch.len();
        self.begin(batch)?;
        let mut rows = batch.len() - before;
        let items = match &mut self.reader {
            Reader::Unknown(_) => return Ok(false),
            Reader::Lines(_) if rows > 0 => return Ok(true),
            Reader::Lines(lines) => return lines.read(batch, room),
            Reader::Items(items) => items,
        };
        let mut bytes = 0;
        loop {
            // As with lines, rows that have arrived are returned before waiting for more.
            let wait = if rows == 0 { Wait::UntilFound } else { Wait::No };
            let row = match Self::next_row(items, &self.place, wait)? {
                Next::Row(row) => row,
                Next::Broken(what) => {
                    let at = items.number();
                    self.damage = Some(Place::damage(items.name(), Unit::Item, at, &what));
                    Err(self.place.bad(Unit::Item, at, ErrorKind::InvalidJson, &what))
                }
                Next::End => return Ok(false),
                Next::Pending => return Ok(true),
            };
            bytes += row.as_ref().map_or(0, |row| row.text().len());
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
            Reader::Unknown(_) => {}
            Reader::Lines(lines) => passed += lines.skip(rows - passed)?,
            Reader::Items(items) => {
                while passed < rows && items.next(Wait::UntilFound)? != Item::End {
                    passed += 1;
                }
            }
        }
        Ok(passed)
    }

    fn damage(&self) -> Option<Problem> {
        match &self.reader {
            Reader::Lines(lines) => lines.damage(),
            Reader::Unknown(_) | Reader::Items(_) => self.damage.clone(),
        }
    }

    fn position(&self) -> Position {
        match &self.reader {
            Reader::Unknown(blocks) => blocks.as_ref().map(Blocks::position).unwrap_or_default(),
            Reader::Items(items) => items.position(),
            Reader::Lines(lines) => lines.position(),
        }
    }
}

impl TextSource for JsonSource {
    fn used_numbers(&self) -> u64 {
        match &self.reader {
            Reader::Unknown(_) => 0,
            Reader::Items(items) => items.number(),
            Reader::Lines(lines) => lines.used_numbers(),
        }
    }
}

fn neither(name: &str) -> Problem {
    let message = format!("input is neither a JSON list of objects nor one object per line: `{name}`");
    Problem::new(ProblemCode::InputFormat, message).hint(format!(
        "write the objects between `[` and `]`, or one per line; with {input_format}, a broken line becomes \
         one bad row",
        input_format = INPUT_FORMAT.to("jsonl")
    ))
}
