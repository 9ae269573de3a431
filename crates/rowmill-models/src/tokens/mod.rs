//! How many tokens a text has: exact where the tokenizer is public, an honest estimate elsewhere.

mod counter;
mod families;
mod files;
mod image;
mod request;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use counter::{Accuracy, TokenCounter, counter};
pub use request::{fixed_tokens, message_tokens, tool_tokens};
