//! `cargo xtask api`: what users of the library can name, kept in a file, so that a change
//! that breaks them is seen before it is merged.

mod changes;
mod describe;
mod lines;
mod link;
mod snapshot;

pub use changes::Changes;
pub use snapshot::{api, surface};

pub(crate) use describe::{JSON_FOLDER, stand_in};
