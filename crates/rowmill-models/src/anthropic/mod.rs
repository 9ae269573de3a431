//! Anthropic's Messages API.

pub(crate) mod client;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
