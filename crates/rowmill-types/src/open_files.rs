//! The limit of this machine on open files.

use std::io;

/// Whether something failed because this process, or the whole system, has reached its limit on open files, connections
/// and pipes.
///
/// ```
/// # use rowmill_types::is_open_file_limit;
/// assert!(is_open_file_limit(&std::io::Error::from_raw_os_error(24)));
/// assert!(!is_open_file_limit(&std::io::Error::from_raw_os_error(2)));
/// ```
#[must_use]
pub fn is_open_file_limit(error: &io::Error) -> bool {
    /// The same on Linux, macOS and the BSDs.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}
