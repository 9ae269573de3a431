//! Samples the first rows, for inputs that do not declare their columns.

use rowmill_core::ports::{Dataset, ReadLimit};
use rowmill_types::{Problem, ProblemCode, Row};

/// The maximum number of rows in the sample.
pub(crate) const SAMPLE_ROWS: usize = 20_480;

/// The sample ends once its text has this many bytes; new fields in later rows are reported when they are
/// read.
const SAMPLE_BYTES: usize = 256 << 20;

/// The limits of the sample.
#[derive(Debug, Clone, Copy)]
struct SampleBounds {
    rows: usize,
    bytes: usize,
}

const BOUNDS: SampleBounds = SampleBounds { rows: SAMPLE_ROWS, bytes: SAMPLE_BYTES };

/// How many rows are read at once.
const ROOM: ReadLimit = ReadLimit { rows: 256, bytes: 256 * 1024 };

/// How far the sample reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleEnd {
    /// To the end of the input.
    WholeInput,
    /// The first rows only, this many.
    First(usize),
}

/// Passes the first rows to `look`, until it returns `false`.
pub(crate) fn sample_rows(
    input: &dyn Dataset,
    look: &mut dyn FnMut(&Row) -> bool,
) -> Result<SampleEnd, Problem> {
    sample_within(input, BOUNDS, look)
}

fn sample_within(
    input: &dyn Dataset,
    most: SampleBounds,
    look: &mut dyn FnMut(&Row) -> bool,
) -> Result<SampleEnd, Problem> {
    if !input.is_rereadable() {
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
    while more && rows < most.rows && bytes < most.bytes {
        more = source.read(&mut batch, ROOM)?;
        for row in batch.drain(..) {
            rows += 1;
            let Ok(row) = row else { continue };
            bytes += row.json_text().len();
            if rows > most.rows || !look(&row) {
                return Ok(SampleEnd::First(rows.min(most.rows)));
            }
        }
    }
    Ok(if more { SampleEnd::First(rows.min(most.rows)) } else { SampleEnd::WholeInput })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputLocation, InputSpec, open_dataset};

    /// How many of `count` rows are in the sample, and how far it reached. The text of each row has 11 bytes.
    fn looked_at(count: usize, most: SampleBounds) -> (usize, SampleEnd) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let rows: String = (10_000..10_000 + count).map(|number| format!("{{\"n\":{number}}}\n")).collect();
        std::fs::write(&path, rows).unwrap();
        let input = open_dataset(&InputSpec::new(InputLocation::File(path), None)).unwrap();
        let mut looked = 0;
        let look = &mut |row: &Row| {
            assert_eq!(row.json_text().len(), 11);
            looked += 1;
            true
        };
        let end = sample_within(&*input, most, look).unwrap();
        (looked, end)
    }

    #[test]
    fn as_many_rows_are_looked_at_as_the_manual_says() {
        assert_eq!(looked_at(SAMPLE_ROWS + 300, BOUNDS), (SAMPLE_ROWS, SampleEnd::First(SAMPLE_ROWS)));
        assert_eq!(looked_at(SAMPLE_ROWS - 1, BOUNDS), (SAMPLE_ROWS - 1, SampleEnd::WholeInput));
        let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sql.md");
        let manual = std::fs::read_to_string(manual).unwrap();
        let (thousands, rest) = (SAMPLE_ROWS / 1000, SAMPLE_ROWS % 1000);
        let sampled = format!(
            "first {thousands},{rest:03} rows have, or fewer where those have {} MiB",
            SAMPLE_BYTES >> 20
        );
        assert!(manual.contains(&sampled), "`docs/sql.md` does not say: {sampled}");
    }

    #[test]
    fn no_further_rows_are_read_once_the_first_ones_have_the_most_bytes() {
        let bounded = |bytes| looked_at(5 * ROOM.rows, SampleBounds { rows: SAMPLE_ROWS, bytes });
        // Rows that were read at once are all used.
        assert_eq!(bounded(1), (ROOM.rows, SampleEnd::First(ROOM.rows)));
        assert_eq!(bounded(11 * ROOM.rows), (ROOM.rows, SampleEnd::First(ROOM.rows)));
        assert_eq!(bounded(11 * ROOM.rows + 1), (2 * ROOM.rows, SampleEnd::First(2 * ROOM.rows)));
    }
}
