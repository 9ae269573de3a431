//! Google's Gemini API.

mod answer;
pub(crate) mod client;
mod sources;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_tests;
pub(crate) mod wire;
