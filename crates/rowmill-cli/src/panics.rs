//! Suppresses messages of panics that become errors.

use std::panic::{set_hook, take_hook};

/// From now on, panics of third-party parsers are not printed: they become errors, which are reported.
/// All other panics go to the previous hook.
pub(crate) fn silence_foreign_code() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if !rowmill::is_in_foreign_code() {
            before(panic);
        }
    }));
}
