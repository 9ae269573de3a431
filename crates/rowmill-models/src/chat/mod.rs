//! OpenAI chat completions and every compatible server.

pub(crate) mod client;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
