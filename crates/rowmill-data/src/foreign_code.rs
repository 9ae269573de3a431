//! Panics in parsers by other authors that read files of any origin.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// How many nested calls of foreign code this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Calls foreign code. A panic in it is returned as an error with the panic's message.
///
/// Anything that `work` changes must not be used again after an error.
pub(crate) fn catch_foreign_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|panic| panic_message(panic.as_ref()).to_owned())
}

/// Whether this thread is in foreign code whose panics become errors. A program's panic hook can check this to
/// print nothing for them; a hook applies to the whole process, so none is set here.
#[must_use]
pub fn is_in_foreign_code() -> bool {
    DEPTH.get() > 0
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_thread_goes_on() {
        assert_eq!(catch_foreign_panic(|| 3), Ok(3));
        let failed: Result<(), String> = catch_foreign_panic(|| panic!("no {}", "luck"));
        assert_eq!(failed, Err("no luck".to_owned()));
        let nested = catch_foreign_panic(|| catch_foreign_panic(|| panic!("inner")).map(|()| 1));
        assert_eq!(nested, Ok(Err("inner".to_owned())));
        assert_eq!(catch_foreign_panic(is_in_foreign_code), Ok(true));
        assert!(!is_in_foreign_code(), "panics of this thread are heard again");
    }
}
