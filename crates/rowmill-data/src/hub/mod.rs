//! Datasets and files of the Hugging Face hub.

mod address;
mod client;
mod converted;
mod file;
mod listing;
mod refusal;
mod selection;

pub use address::HubAddress;
pub(crate) use selection::{fetch_hub_files, fetch_single_file};
