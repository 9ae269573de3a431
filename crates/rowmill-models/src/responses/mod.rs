//! The OpenAI Responses API.

mod answer;
pub(crate) mod client;
mod socket;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_tests;
pub(crate) mod wire;
