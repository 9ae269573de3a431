//! Downloads files: resumable, verified, and cached for the next time.

mod digest;
mod download_entry;
mod fetcher;
mod file_name;
mod partial;
mod request;
mod transfer;
mod web;

pub(crate) use digest::{ExpectedFile, FileDigest, sha256_hex};
pub(crate) use download_entry::{CachedVersion, DownloadEntry};
pub(crate) use file_name::safe_file_name;
pub(crate) use request::{fetch_answer, refusal_text};
pub(crate) use transfer::{DownloadOutcome, DownloadRequest, download, version_folder_name};
pub(crate) use web::fetch_web_file;
