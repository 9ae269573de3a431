//! The batch APIs of the vendors: files, jobs, and the results of their rows.

mod answer_row;
mod anthropic;
mod clock;
mod create;
mod download;
mod file_requests;
mod form_file;
mod gemini;
mod inline_rows;
mod job;
mod job_requests;
mod lists;
mod mistral;
mod openai;
mod result_lines;
mod route;
mod row;
mod serve;
mod settings;
mod settle;
mod store;
mod stored_bytes;
mod tally;
mod timeline;
mod together;
mod validate;
mod vendor;
mod worker;

pub(crate) use self::download::{BatchAnswer, deliver_download};
pub(crate) use self::route::{BatchRoute, live_path};
pub(crate) use self::serve::BatchServed;
pub use self::settings::SimulatedBatches;
pub(crate) use self::store::BatchStore;
pub(crate) use self::stored_bytes::StoredBytes;
pub use self::tally::BatchStats;
