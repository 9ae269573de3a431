//! The batch APIs of providers: one implementation per family of APIs, and a table of what differs within a family.

mod anthropic;
mod build;
mod download;
mod google;
mod job_client;
mod job_fields;
mod job_file;
mod limits;
mod live_settings;
mod openai;
mod row_translation;
mod support;
#[cfg(test)]
mod tests;

pub use build::{batch_providers, batch_rules, build_batch_api};
pub use limits::BatchLimitOverrides;
pub(crate) use support::{
    ANTHROPIC_BATCH, AZURE_BATCH, BatchSupport, GOOGLE_BATCH, GROQ_BATCH, MISTRAL_BATCH, OPENAI_BATCH,
    TOGETHER_BATCH,
};
