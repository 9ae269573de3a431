//! `cargo xtask api`: keeps a snapshot of everything that users of the library can name, so that a breaking
//! change is noticed before it is merged.

mod changes;
mod lines;
mod link;
mod rustdoc;
mod snapshot;

pub use changes::ApiChanges;
pub use snapshot::{check_api, public_surface};

pub(crate) use rustdoc::{JSON_FOLDER, run_as_rustdoc};
