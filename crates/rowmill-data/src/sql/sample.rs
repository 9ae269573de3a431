//! A look at the first rows, for inputs that do not declare their columns.

use rowmill_core::ports::{Dataset, Room};
use rowmill_types::{Problem, ProblemCode, Row};

/// How many rows are looked at.
pub(crate) const SAMPLE_ROWS: usize = 20_480;

/// Rows are looked at until their text has this many bytes; what comes later is told of when it is met.
const SAMPLE_BYTES: usize = 256 << 20;

/// How many rows are read at once.
const ROOM: Room = Room { rows: 256, bytes: 256 * 1024 };

/// How far a look at the first rows came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleEnd {
    /// To the end of the input.
    WholeInput,
    /// Over this many rows.
    First(usize),
}

/// Hands the first rows to `look`, until that returns `false`.
pub(crate) fn sample(input: &dyn Dataset, look: &mut dyn FnMut(&Row) -> bool) -> Result<SampleEnd, Problem> {
    if !input.rereadable() {
        return Err(Problem::new(
            ProblemCode::Internal,
            "a stream must be copied before it is selected from",
        ));
    }
    let mut source = input.open()?;
    let mut batch = Vec::new();
    let mut rows = 0;
    let mut bytes = 0;
    let mut more = true;
    while more && rows < SAMPLE_ROWS && bytes < SAMPLE_BYTES {
        more = source.read(&mut batch, ROOM)?;
        for row in batch.drain(..) {
            rows += 1;
            let Ok(row) = row else { continue };
            bytes += row.text().len();
            if rows > SAMPLE_ROWS || !look(&row) {
                return Ok(SampleEnd::First(rows.min(SAMPLE_ROWS)));
            }
        }
    }
    Ok(if more { SampleEnd::First(rows.min(SAMPLE_ROWS)) } else { SampleEnd::WholeInput })
}
