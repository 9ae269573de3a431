//! Counts the tokens of texts: exact if the tokenizer is public, otherwise an estimate.

mod counter;
mod families;
mod files;
mod image;
mod request;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use counter::{CountAccuracy, TokenCounter, token_counter};
pub use request::{fixed_tokens, message_tokens, tool_tokens};
