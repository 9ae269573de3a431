//! `cargo xtask api`: keeps a snapshot of everything that users of the library can name, so that a breaking
//! change is noticed before it is merged.

mod changes;
mod describe;
mod lines;
mod link;
mod snapshot;

pub use changes::Changes;
pub use snapshot::{api, surface};

pub(crate) use describe::{JSON_FOLDER, stand_in};
