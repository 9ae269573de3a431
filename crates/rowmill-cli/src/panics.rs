//! What is printed of panics.

use std::panic::{set_hook, take_hook};

/// From now on, panics of parsers that others wrote are not printed: they become errors, which are told. All other
/// panics go to the hook that was there before.
pub(crate) fn silence_foreign_code() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if !rowmill::in_foreign_code() {
            before(panic);
        }
    }));
}
