//! `cargo xtask make-rows`: a sample dataset for benchmarks and comparisons.

use std::fs::File;
use std::io::BufWriter;

use rowmill_testkit::made_rows::{MadeFormat, write_made_rows};

use crate::Failure;
use crate::arguments::{MakeRowsFlags, RowsFormat};

/// Writes the rows into a file.
pub(crate) fn make_rows(flags: &MakeRowsFlags) -> Result<(), Failure> {
    let format = match flags.format {
        RowsFormat::Jsonl => MadeFormat::Jsonl,
        RowsFormat::Csv => MadeFormat::Csv,
        RowsFormat::Parquet => MadeFormat::Parquet,
    };
    let failed = || Failure::of(format_args!("`{}` cannot be written", flags.output.display()).to_string());
    let file = File::create(&flags.output).map_err(failed())?;
    let out = BufWriter::with_capacity(1 << 20, file);
    write_made_rows(out, format, flags.rows, flags.seed).map_err(failed())
}
