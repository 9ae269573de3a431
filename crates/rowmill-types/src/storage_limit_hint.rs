//! What to do where a file cannot become any longer.

use std::io;

/// How hints begin where a disk is full.
const DISK_FULL: &str = "the disk is full: free some space";

/// How hints begin where a file would become larger than files may be.
const FILE_TOO_LARGE: &str = "raise the limit on file sizes (`ulimit -f`, or a quota)";

/// How the hint begins for a write that found no room. `None` where it failed for another reason.
///
/// ```
/// # use rowmill_types::storage_limit_hint;
/// let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
/// assert_eq!(storage_limit_hint(&error), Some("the disk is full: free some space"));
/// assert_eq!(storage_limit_hint(&std::io::Error::from(std::io::ErrorKind::PermissionDenied)), None);
/// ```
#[must_use]
pub fn storage_limit_hint(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(DISK_FULL),
        io::ErrorKind::FileTooLarge => Some(FILE_TOO_LARGE),
        _ => None,
    }
}

/// How a hint begins, if [`storage_limit_hint`] gave its beginning: whoever knows better how to go on says the rest.
#[must_use]
pub fn find_storage_limit_hint(hint: &str) -> Option<&'static str> {
    [DISK_FULL, FILE_TOO_LARGE].into_iter().find(|begin| hint.starts_with(begin))
}
