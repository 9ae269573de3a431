//! From a row to the text that a worker is asked with.

mod placeholders;
mod template;

pub use template::Template;

pub(crate) use placeholders::{Piece, pieces};
