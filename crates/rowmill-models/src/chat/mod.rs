//! OpenAI chat completions and every compatible server.

pub(crate) mod answer;
mod calls;
pub(crate) mod client;
mod stream;
#[cfg(test)]
mod tests;
mod thinking_switch;
#[cfg(test)]
mod tool_tests;
pub(crate) mod wire;
