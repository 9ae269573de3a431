//! Detects which standard streams were closed when the process started.
//!
//! Before `main`, Rust's runtime opens `/dev/null` for reading and writing in place of every closed standard stream.
//! After that, such a stream cannot be distinguished from a `/dev/null` that the caller opened in the same way, as
//! Python's `subprocess.DEVNULL` does. Therefore it is checked earlier, by a function that the loader calls.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::fcntl_getfd;

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

#[used]
#[expect(unsafe_code, reason = "the loader calls what this section lists before Rust's runtime starts")]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static BEFORE_MAIN: extern "C" fn() = look_at_stdout;

/// The runtime is not initialized here, so this makes one system call and stores one bit.
extern "C" fn look_at_stdout() {
    #[expect(unsafe_code, reason = "a number that may be no open file has no safe form")]
    // SAFETY: the borrow ends with the call, nothing is opened or closed meanwhile, and a descriptor that is not open
    // results in an error.
    let flags = fcntl_getfd(unsafe { BorrowedFd::borrow_raw(1) });
    STDOUT_WAS_CLOSED.store(flags.is_err(), Ordering::Relaxed);
}

/// Whether standard output was closed when the process started.
#[must_use]
pub fn stdout_was_closed_at_start() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}
