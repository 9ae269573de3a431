//! From a row to the text that a worker is asked with.

mod placeholders;
mod template;

pub use placeholders::{Piece, pieces};
pub use template::Template;
