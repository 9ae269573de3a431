//! Text extraction in a child process.

use std::io::{Read, Write};
use std::thread;

use super::extract_text;
use crate::foreign_code::catch_foreign_panic;

/// Stack size for deeply nested documents.
pub(super) const STACK: usize = 256 * 1024 * 1024;
/// The maximum size of a document.
pub(crate) const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// The maximum memory of a child.
#[cfg(unix)]
const MEMORY: u64 = 2 * 1024 * 1024 * 1024;

/// Extracts the text of the document on `input` and writes it to `output`. This is all that the child of
/// [`TextExtractor::Child`](super::TextExtractor::Child) has to do.
///
/// It limits the memory of the whole process, so it must be the only thing that the process does. On failure, the
/// process must print the error to standard error and exit with a nonzero code.
///
/// # Errors
///
/// As for [`extract_text`]; or the document cannot be read or the text cannot be written.
pub fn run_extract_child(
    media_type: &str,
    input: &mut dyn Read,
    output: &mut dyn Write,
) -> Result<(), String> {
    #[cfg(unix)]
    bound_memory();
    let mut bytes = Vec::new();
    input
        .take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("could not be passed to the process that extracts text: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("has more than {} MiB", MOST_BYTES >> 20));
    }
    let text = thread::scope(|scope| {
        let work = || extract_guarded(media_type, &bytes);
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("cannot be read: cannot start a thread: {error}"))?;
        thread.join().unwrap_or_else(|_| Err(failed()))
    })?;
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| format!("has a text that cannot be passed on: {error}"))
}

/// Extracts text; a panic is returned as an error.
pub(super) fn extract_guarded(media_type: &str, bytes: &[u8]) -> Result<String, String> {
    catch_foreign_panic(|| extract_text(media_type, bytes)).unwrap_or_else(|_| Err(failed()))
}

fn failed() -> String {
    "is broken, or has an unknown format".into()
}

/// If the limit cannot be set, extraction runs anyway: the limit is a second line of defence.
#[cfg(unix)]
fn bound_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let hardest = getrlimit(Resource::As).maximum;
    let most = hardest.map_or(MEMORY, |hardest| hardest.min(MEMORY));
    setrlimit(Resource::As, Rlimit { current: Some(most), maximum: hardest }).unwrap_or_default();
}
