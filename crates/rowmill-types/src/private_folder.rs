//! Folders and files for what may be private: prompts, answers and whatever tools gave.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// How files are opened that only their owner can read, whatever the folder is that they are in. One that is there
/// already keeps its permissions.
#[must_use]
pub fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes a folder that only its owner can look into, and the folders on the way to it as usual. One that is
/// there already stays as it is.
///
/// # Errors
///
/// It cannot be made.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}
