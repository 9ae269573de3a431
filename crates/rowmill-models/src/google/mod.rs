//! Google's Gemini API.

pub(crate) mod client;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
