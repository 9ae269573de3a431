//! Reads the first rows of an input before anything is written, so that an input that cannot be read,
//! or lacks a column, does not cost the output of an earlier run.

use std::collections::VecDeque;

use rowmill_core::ports::{Dataset, InputReadProgress, ReadLimit, RequestedDatasetPart, RowSource};
use rowmill_engine::StopRules;
use rowmill_types::{Problem, RowReadResult};

use crate::prepare_input::PreparedInput;

/// The same read size as during a run.
const ROOM: ReadLimit = ReadLimit { rows: 256, bytes: 256 * 1024 };

/// A source with its first rows.
struct BufferedSource {
    first: VecDeque<RowReadResult>,
    source: Box<dyn RowSource>,
    /// Whether there may be more rows.
    more: bool,
}

/// Opens the input and waits for its first rows, unless no rows are wanted. The results of an earlier
/// run are discarded only after this.
///
/// # Errors
///
/// The input cannot be read, or its first rows lack a column.
pub(crate) fn first_rows(
    rows: &PreparedInput,
    rules: &StopRules,
    columns: Option<Vec<String>>,
) -> Result<Box<dyn RowSource>, Problem> {
    let mut source = open(&*rows.dataset, columns)?;
    let ends_at_once = rows.selector.is_finished() || rules.max_errors == Some(0);
    if ends_at_once {
        return Ok(source);
    }
    let mut first = Vec::new();
    let more = source.read(&mut first, ROOM)?;
    Ok(Box::new(BufferedSource { first: first.into(), source, more }))
}

/// Opens the input with only these columns, if it declares its columns. The row of a document always
/// contains the name of its file.
fn open(dataset: &dyn Dataset, columns: Option<Vec<String>>) -> Result<Box<dyn RowSource>, Problem> {
    let declared = if dataset.default_id_field().is_some() { None } else { dataset.columns()? };
    let (Some(wanted), Some(declared)) = (columns, declared) else { return dataset.open() };
    let names = declared.into_iter().map(|column| column.name);
    let columns = Some(names.filter(|name| wanted.contains(name)).collect());
    dataset.open_part(&RequestedDatasetPart { columns, conditions: Vec::new() })
}

impl RowSource for BufferedSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        if self.first.is_empty() {
            return if self.more { self.source.read(batch, room) } else { Ok(false) };
        }
        let count = room.rows.max(1).min(self.first.len());
        batch.extend(self.first.drain(..count));
        Ok(self.more || !self.first.is_empty())
    }

    fn skip(&mut self, rows: u64) -> Result<u64, Problem> {
        let count = usize::try_from(rows).unwrap_or(usize::MAX).min(self.first.len());
        self.first.drain(..count);
        let rest = rows - count as u64;
        let passed = if rest > 0 && self.more { self.source.skip(rest)? } else { 0 };
        Ok(count as u64 + passed)
    }

    fn damage(&self) -> Option<Problem> {
        self.source.damage()
    }

    fn position(&self) -> InputReadProgress {
        self.source.position()
    }
}
