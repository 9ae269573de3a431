//! Standard output, which may lead nowhere.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rowmill_types::{Problem, ProblemCode};
use rustix::fs::{OFlags, fcntl_getfl};

use super::claim::cannot_write;

/// What is told when the reader of standard output has what it wants and goes.
pub const READER_ENDED: &str = "the program that reads standard output has ended before the run did";

/// Standard output, whose failures are told. The standard library takes a stream that is not open
/// for writing for one that has taken everything.
#[derive(Debug)]
pub struct StandardOutput {
    file: File,
}

impl StandardOutput {
    /// Standard output of this process.
    ///
    /// # Errors
    ///
    /// It is not open.
    pub fn open() -> io::Result<Self> {
        Ok(Self { file: File::from(io::stdout().as_fd().try_clone_to_owned()?) })
    }

    /// Checks that answers that are written there can be seen by anybody.
    ///
    /// # Errors
    ///
    /// It is closed, or not open for writing.
    pub fn check() -> Result<(), Problem> {
        let access = Self::open().and_then(|out| Ok((fcntl_getfl(&out.file)? & OFlags::RWMODE, out)));
        let message = match access {
            Ok((access, out)) if access == OFlags::RDWR && out.is_null()? => {
                "standard output is closed, so everything that is written there would be lost"
            }
            Ok((access, _)) if access != OFlags::RDONLY => return Ok(()),
            _ => "standard output is not open for writing",
        };
        Err(Problem::new(ProblemCode::OutputPath, message).hint(
            "name a file with `--output`, or lead standard output somewhere; `> /dev/null` throws it away",
        ))
    }

    /// Whether this is the null device. The runtime opens it for reading and writing in the place of a
    /// stream that is closed when the process begins; a shell that is told to throw the output away
    /// opens it for writing alone. A program that opens it for both loses the output just the same.
    fn is_null(&self) -> Result<bool, Problem> {
        let failed = |error: io::Error| stdout_failed(&error);
        let (found, null) = (self.file.metadata().map_err(failed)?, fs::metadata("/dev/null"));
        Ok(null.is_ok_and(|null| null.rdev() == found.rdev() && null.mode() == found.mode()))
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _others_wait = io::stdout().lock();
        self.file.write(bytes)
    }

    /// Nothing else comes between the parts of what is written at once.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let _others_wait = io::stdout().lock();
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is told when standard output takes no more. A reader that has what it wants ends so too.
pub(crate) fn stdout_failed(error: &io::Error) -> Problem {
    let problem = cannot_write(Path::new("standard output"), error);
    match error.kind() {
        io::ErrorKind::BrokenPipe => Problem { message: READER_ENDED.into(), ..problem },
        _ => problem,
    }
}
