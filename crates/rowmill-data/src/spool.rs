//! Copies a stream into a file, so that it can be read more than once.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::{Dataset, InputIdentity, RowSource};
use rowmill_types::settings::WORK_DIR;
use rowmill_types::{DiagnosticText, Problem, ProblemCode};
use tempfile::{Builder, TempPath};

use crate::dataset::stream_format;
use crate::text_dataset::{TextFilesDataset, open_bytes};
use crate::{FileList, InputFile, InputSpec};

/// How many bytes are copied at once.
const BLOCK: usize = 256 * 1024;

/// A copy of a stream. It is removed with the last reader.
#[derive(Debug)]
struct SpooledDataset {
    rows: TextFilesDataset,
    _copy: TempPath,
}

/// Copies the bytes of an input into a new file in `folder`, whose name starts with `begin` and ends with
/// `end`, and returns the dataset of that file.
///
/// Its identity keeps the name of the input, so that the location of the copy does not look like a change of
/// the input.
///
/// # Errors
///
/// The input cannot be read, its format is unknown, or the copy cannot be written.
pub fn spool_input(
    spec: &InputSpec,
    folder: &Path,
    (begin, end): (&str, &str),
) -> Result<Arc<dyn Dataset>, Problem> {
    let format = stream_format(spec)?;
    let mut input = open_bytes(&spec.location)?;
    let not_written = |error: io::Error| {
        Problem::new(ProblemCode::WriteFailed, format!("cannot copy the input to `{}`", folder.display()))
            .cause(error)
            .hint(format!("free some space or choose another {WORK_DIR}"))
    };
    // The rows may be private: nobody else may read the file.
    let copy = Builder::new().prefix(begin).suffix(end).tempfile_in(folder).map_err(not_written)?;
    let mut block = vec![0; BLOCK];
    loop {
        let count = match input.read(&mut block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let message = format!("cannot read more of the input: `{}`", spec.location.name());
                return Err(Problem::new(ProblemCode::InputUnreadable, message)
                    .cause(error)
                    .hint("nothing was sent; run the command again"));
            }
        };
        copy.as_file().write_all(block.get(..count).unwrap_or_default()).map_err(not_written)?;
    }
    let (name, copy) = (spec.location.name(), copy.into_temp_path());
    let file = InputFile::new(copy.to_path_buf(), name.clone());
    let list = FileList { name, files: vec![file], identity: None };
    let rows = TextFilesDataset::new(list, format, spec.delimiter)?;
    Ok(Arc::new(SpooledDataset { rows, _copy: copy }))
}

impl Dataset for SpooledDataset {
    fn open(&self) -> Result<Box<dyn RowSource>, Problem> {
        self.rows.open()
    }

    fn is_rereadable(&self) -> bool {
        self.rows.is_rereadable()
    }

    fn identity(&self) -> Result<InputIdentity, Problem> {
        self.rows.identity()
    }

    fn is_untyped(&self) -> bool {
        self.rows.is_untyped()
    }

    fn read_notice(&self) -> Option<DiagnosticText> {
        self.rows.read_notice()
    }
}
