//! Standard output, which may be closed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rowmill_streams::stdout_was_closed_at_start;
use rowmill_types::settings::OUTPUT;
use rowmill_types::{Problem, ProblemCode};
use rustix::fs::{OFlags, fcntl_getfl};

use super::claim::write_problem;

/// The message if the reader of standard output has enough and ends.
pub const READER_ENDED: &str = "the program that reads standard output has ended before the run did";

/// Standard output that reports write failures. The standard library treats a stream that is not open for
/// writing as if it had accepted everything.
#[derive(Debug)]
pub struct StandardOutput {
    file: File,
}

impl StandardOutput {
    /// Opens the standard output of this process.
    ///
    /// # Errors
    ///
    /// It is not open, or was not when the process started.
    pub fn open() -> io::Result<Self> {
        if stdout_was_closed_at_start() {
            return Err(io::Error::other("standard output is closed"));
        }
        Ok(Self { file: File::from(io::stdout().as_fd().try_clone_to_owned()?) })
    }

    /// Checks that what is written to standard output goes somewhere.
    ///
    /// # Errors
    ///
    /// It is closed, or not open for writing.
    pub fn check() -> Result<(), Problem> {
        let access = Self::open().and_then(|out| Ok(fcntl_getfl(&out.file)? & OFlags::RWMODE));
        let message = match access {
            Ok(access) if access != OFlags::RDONLY => return Ok(()),
            Ok(_) => "standard output is not open for writing",
            Err(_) => "standard output is closed, so everything written to it would be lost",
        };
        Err(Problem::new(ProblemCode::OutputPath, message).hint(format!(
            "choose a file with {OUTPUT}, or redirect standard output; `> /dev/null` discards it"
        )))
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _others_wait = io::stdout().lock();
        self.file.write(bytes)
    }

    /// Nothing else comes between the parts of a single write.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let _others_wait = io::stdout().lock();
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The problem that standard output accepts no more, which is also how a reader that has enough ends.
pub(crate) fn stdout_problem(error: &io::Error) -> Problem {
    let problem = write_problem(Path::new("standard output"), error);
    match error.kind() {
        io::ErrorKind::BrokenPipe => Problem { message: READER_ENDED.into(), ..problem },
        _ => problem,
    }
}
