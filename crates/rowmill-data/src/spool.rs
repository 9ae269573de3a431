//! Copying a stream into a file, so that it can be read more than once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rowmill_core::ports::Dataset;
use rowmill_types::{Problem, ProblemCode};

use crate::dataset::stream_format;
use crate::files::{FilesDataset, open_bytes};
use crate::{FileList, InputFile, InputSpec};

/// How much is copied at once.
const BLOCK: usize = 256 * 1024;

/// Copies the bytes of an input into a new file and gives the dataset of that file.
///
/// Its identity keeps the name of the input, so that the place of the copy does not
/// look like a change of the input.
///
/// # Errors
///
/// The input cannot be read, its format is not known, or the copy cannot be written.
pub fn spool(spec: &InputSpec, into: &Path) -> Result<Arc<dyn Dataset>, Problem> {
    let format = stream_format(spec)?;
    let mut input = open_bytes(&spec.location)?;
    let not_written = |error: io::Error| {
        Problem::new(ProblemCode::WriteFailed, format!("input cannot be copied to `{}`", into.display()))
            .cause(error)
            .hint("make room or choose another `--work-dir`")
    };
    // The rows may be private, and `create_new` neither follows nor replaces what is there.
    let mut copy = create_private(into).map_err(not_written)?;
    let mut block = vec![0; BLOCK];
    loop {
        let count = match input.read(&mut block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let message = format!("input cannot be read any further: `{}`", spec.location.name());
                return Err(Problem::new(ProblemCode::InputUnreadable, message)
                    .cause(error)
                    .hint("nothing was sent; run the command again"));
            }
        };
        copy.write_all(block.get(..count).unwrap_or_default()).map_err(not_written)?;
    }
    let name = spec.location.name();
    let file = InputFile { path: into.into(), name: name.clone() };
    Ok(Arc::new(FilesDataset::new(FileList { name, files: vec![file], identity: None }, format)))
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}
