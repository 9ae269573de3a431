//! Datasets and files of the Hugging Face hub.

mod address;
mod converted;
mod file;
mod listing;
mod question;
mod refusal;
mod selection;

pub use address::HubAddress;
pub(crate) use selection::{fetch, fetch_text};
