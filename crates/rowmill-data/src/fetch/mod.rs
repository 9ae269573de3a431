//! Fetches remote files: the settings, the events, and the way to those who do it.

mod event;
mod fetch_to_disk;
mod settings;

pub use event::{FetchEvent, FetchEventKind};
pub use fetch_to_disk::{FetchPurpose, Fetcher, fetch_to_disk};
pub use settings::{FetchSettings, HubSettings, RetrySettings};
