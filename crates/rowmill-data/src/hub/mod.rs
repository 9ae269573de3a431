//! Datasets and files of the Hugging Face hub.

mod address_parts;
mod client;
mod converted;
mod file;
mod listing;
mod refusal;
mod selection;

pub(crate) use selection::{fetch_hub_files, fetch_single_file};
