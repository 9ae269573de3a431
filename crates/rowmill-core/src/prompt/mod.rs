//! Renders a row into the text that is sent to a worker.

mod placeholders;
mod template;

pub use placeholders::{Piece, pieces};
pub use template::Template;
