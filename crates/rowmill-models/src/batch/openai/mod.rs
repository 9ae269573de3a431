//! Batch APIs in OpenAI's style: OpenAI, Azure OpenAI, Groq, Together AI and Mistral.

pub(super) mod api;
pub(super) mod dialect;
pub(super) mod job;
pub(super) mod result;
