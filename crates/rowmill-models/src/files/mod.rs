//! Files attached to messages: which ones providers accept, how they are written, and where large ones are
//! stored.

mod cache;
mod forms;
mod multipart;
mod outbound;
mod parts;
mod rules;
mod stores;
#[cfg(test)]
mod tests;
mod uploads;

pub(crate) use cache::Uploaded;
pub(crate) use forms::{Form, is_wave};
pub(crate) use outbound::{Files, have_files};
pub(crate) use parts::{Shape, Writer, room, write_message};
pub use rules::attachment_rules;
pub(crate) use rules::{
    ALIYUN_FILES, ANTHROPIC_FILES, BUILT_IN_FILES, GOOGLE_FILES, GROQ_FILES, IMAGES_ONLY, MISTRAL_FILES,
    OPENAI_FILES, OPENROUTER_FILES, TEXT_ONLY, Taken, XAI_FILES,
};
pub(crate) use stores::{Place, add_beta};
