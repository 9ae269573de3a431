//! The OpenAI Responses API.

pub(crate) mod client;
mod socket;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
