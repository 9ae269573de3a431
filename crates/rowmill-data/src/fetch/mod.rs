//! Fetches remote files: resumable, verified, and cached for the next time.

mod digest;
mod download;
mod download_entry;
mod event;
mod fetch_to_disk;
mod file_name;
mod partial;
mod request;
mod settings;
mod web;

pub(crate) use digest::{ExpectedFile, FileDigest, sha256_hex};
pub(crate) use download::{DownloadOutcome, DownloadRequest, download, version_folder_name};
pub(crate) use download_entry::{CachedVersion, DownloadEntry};
pub use event::{FetchEvent, FetchStep};
pub use fetch_to_disk::{FetchPurpose, Fetcher, fetch_to_disk};
pub(crate) use file_name::{percent_decoded, safe_file_name};
pub(crate) use request::{fetch_answer, refusal_text};
pub use settings::{FetchSettings, HubSettings, RetrySettings};
