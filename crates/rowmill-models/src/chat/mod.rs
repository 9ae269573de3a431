//! OpenAI chat completions and every compatible server.

mod answer;
pub(crate) mod client;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
