//! `cargo xtask make-rows`: a sample dataset for benchmarks and comparisons.

use std::fs::File;
use std::io::BufWriter;

use rowmill_testkit::sample_rows::{SampleFormat, write_sample_rows};

use crate::TaskFailure;
use crate::arguments::{MakeRowsFlags, RowsFormat};

/// Writes the rows into a file.
pub(crate) fn make_rows(flags: &MakeRowsFlags) -> Result<(), TaskFailure> {
    let format = match flags.format {
        RowsFormat::Jsonl => SampleFormat::Jsonl,
        RowsFormat::Csv => SampleFormat::Csv,
        RowsFormat::Parquet => SampleFormat::Parquet,
    };
    let failed =
        || TaskFailure::context(format_args!("`{}` cannot be written", flags.output.display()).to_string());
    let file = File::create(&flags.output).map_err(failed())?;
    let out = BufWriter::with_capacity(1 << 20, file);
    write_sample_rows(out, format, flags.rows, flags.seed).map_err(failed())
}
