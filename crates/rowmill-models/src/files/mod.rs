//! Files attached to messages: which ones providers accept, how they are written, and where large ones are
//! stored.

mod cache;
mod forms;
mod message_parts;
mod multipart;
mod outbound;
mod rules;
mod stores;
#[cfg(test)]
mod tests;
mod uploads;

pub(crate) use cache::UploadedFiles;
pub(crate) use forms::{FileForm, is_wave};
pub(crate) use message_parts::{MessageShape, PartWriter, message_file_bytes, write_message};
pub(crate) use multipart::{FormFile, FormFrame};
pub(crate) use outbound::{FileSender, check_inline_files, have_files};
pub use rules::attachment_rules;
pub(crate) use rules::{
    ALIYUN_FILES, ANTHROPIC_FILES, AcceptedFiles, BUILT_IN_FILES, GOOGLE_FILES, GROQ_FILES, IMAGES_ONLY,
    MISTRAL_FILES, OPENAI_FILES, OPENROUTER_FILES, TEXT_ONLY, XAI_FILES,
};
pub(crate) use stores::{UploadAddress, add_beta};
