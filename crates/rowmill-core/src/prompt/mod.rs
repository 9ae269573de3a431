//! Renders a row into the text that is sent to a worker.

mod placeholders;
mod template;

pub use placeholders::{TemplatePiece, split_placeholders};
pub use template::PromptTemplate;
