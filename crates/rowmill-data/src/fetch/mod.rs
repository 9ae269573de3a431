//! Fetches remote files: resumable, verified, and cached for the next time.

mod ask;
mod bring;
mod digest;
mod download;
mod entry;
mod event;
mod naming;
mod partial;
mod settings;
mod web;

pub(crate) use ask::{ask, said_in};
pub use bring::{Fetcher, Purpose, bring};
pub(crate) use digest::{Digest, Expected, digest_of};
pub(crate) use download::{Got, Wanted, download, version_name};
pub(crate) use entry::{Entry, Known};
pub use event::{FetchEvent, FetchStep};
pub(crate) use naming::{decoded, safe};
pub use settings::{FetchSettings, HubSettings, Patience};
