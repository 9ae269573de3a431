//! Parsers that were written by others and read files from anywhere: what they do when they panic.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// How many calls of foreign code this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Calls foreign code. A panic in it is an error with the panic's message, and nothing of it is printed.
///
/// What `work` changes must not be used again after an error.
pub(crate) fn without_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    silence_hook();
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    done.map_err(|panic| panic_message(panic.as_ref()).to_owned())
}

/// From now on, panics of threads that are in foreign code are not printed; all others go to the
/// hook that was there before.
fn silence_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if DEPTH.get() == 0 {
                before(panic);
            }
        }));
    });
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
        assert_eq!(without_panic(|| 3), Ok(3));
        let failed: Result<(), String> = without_panic(|| panic!("no {}", "luck"));
        assert_eq!(failed, Err("no luck".to_owned()));
        let nested = without_panic(|| without_panic(|| panic!("inner")).map(|()| 1));
        assert_eq!(nested, Ok(Err("inner".to_owned())));
        assert_eq!(DEPTH.get(), 0, "panics of this thread are heard again");
    }
}
