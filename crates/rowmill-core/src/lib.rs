//! Decisions without side effects, and the ports that adapters implement.
//!
//! Nothing here reads a file, a clock or the environment.

pub mod agent;
pub mod answer_consequence;
pub mod answer_key;
pub mod cost;
pub mod fingerprint;
pub mod forecast;
pub mod history;
pub mod jobs;
pub mod json_text;
pub mod known_secrets;
pub mod ledger;
pub mod limits;
mod moved_run;
pub mod ports;
pub mod prompt;
pub mod record;
pub mod redact;
pub mod resume;
pub mod retry;
pub mod run_header;
pub mod select;
pub mod setting_changes;
pub mod stats;
pub mod summary;
pub mod time_span;
pub mod validate;
pub mod variables;
