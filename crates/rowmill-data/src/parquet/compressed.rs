//! Parquet files that were compressed as a whole: `rows.parquet.gz`.
//!
//! The footer is at the end and is read first, so such a file is decompressed into a temporary one first.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;
use rowmill_types::{Problem, ProblemCode};
use tempfile::{NamedTempFile, TempPath};

use crate::InputFile;
use crate::dataset::open_problem;

/// The decompressed file, which is removed when this is dropped; `None` if the file is not compressed.
pub(super) fn decompress_to_temp(file: &InputFile) -> Result<Option<TempPath>, Problem> {
    let mut packed = File::open(&file.path).map_err(|error| open_problem(&file.path, &error))?;
    let failed = |error: io::Error| {
        Problem::new(ProblemCode::InputUnreadable, format!("cannot decompress input file `{}`", file.name))
            .cause(error)
            .hint(
                "decompress it first and pass the Parquet file; decompression needs space in the temporary \
                 folder",
            )
    };
    let mut start = Vec::with_capacity(4);
    Read::by_ref(&mut packed).take(4).read_to_end(&mut start).map_err(failed)?;
    packed.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut unpacker: Box<dyn Read> = match start.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(io::BufReader::new(packed))),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(packed).map_err(failed)?),
        _ => return Ok(None),
    };
    let mut plain = NamedTempFile::with_prefix("rowmill-").map_err(failed)?;
    io::copy(&mut unpacker, plain.as_file_mut()).map_err(failed)?;
    Ok(Some(plain.into_temp_path()))
}
