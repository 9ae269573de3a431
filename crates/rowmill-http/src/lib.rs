//! The HTTP client that all adapters share: one pool, one TLS setup, no retries.

mod client;

pub use client::{Answer, HttpClient, HttpFailure, Target};
pub use reqwest::Url;
pub use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
