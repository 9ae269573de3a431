//! Anthropic's Messages API.

mod answer;
pub(crate) mod client;
mod sources;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_tests;
mod tools;
pub(crate) mod wire;
