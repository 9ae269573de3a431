//! A sample dataset: the same rows in every format, for benchmarks and comparisons.

mod lines;
mod row;
mod table;

use std::io::{self, Write};

/// The format of sample rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleFormat {
    /// One JSON object per line: the same text as that of rows read from the Parquet file.
    Jsonl,
    /// Comma-separated values with a header. Lists and objects are JSON text; null is empty.
    Csv,
    /// Apache Parquet, compressed with Snappy, in row groups of 131,072 rows.
    Parquet,
}

/// Writes `rows` sample rows. The same seed gives the same rows in every format; memory use does not exceed a
/// row group, whatever the number of rows.
///
/// Columns: `id` (integer, from 1), `split` (`eval`, `test` or `train`), `score` (real or
/// null), `price` (decimal(10, 2) or null), `flag` (boolean or null), `day` (date or null),
/// `at` (timestamp), `title` (text or null), `text` (text of about 80 bytes), `tags` (list of
/// text, or null), `meta` (object of `lang`, `stars` and `source`, which is an object of `site`,
/// or null).
///
/// ```
/// # use rowmill_testkit::sample_rows::{SampleFormat, write_sample_rows};
/// let mut out = Vec::new();
/// write_sample_rows(&mut out, SampleFormat::Jsonl, 2, 0).unwrap();
/// let lines = String::from_utf8(out).unwrap();
/// assert!(lines.starts_with(r#"{"id":1,"split":""#));
/// assert_eq!(lines.lines().count(), 2);
/// ```
///
/// # Errors
///
/// Writing to `out` fails.
pub fn write_sample_rows(
    out: impl Write + Send,
    format: SampleFormat,
    rows: u64,
    seed: u64,
) -> io::Result<()> {
    match format {
        SampleFormat::Jsonl => lines::write_jsonl(out, rows, seed),
        SampleFormat::Csv => lines::write_csv(out, rows, seed),
        SampleFormat::Parquet => table::write_parquet(out, rows, seed),
    }
}
