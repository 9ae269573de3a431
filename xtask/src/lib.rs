//! Tasks for developers and CI besides `cargo`: generated documents, the public API, the crate graph,
//! licences, benchmarks, sample rows, and a run with a real model.

mod api;
mod architecture;
mod arguments;
mod bench;
mod deny;
mod failure;
mod flag_names;
mod generate;
mod layers;
mod licences;
mod make_rows;
mod process_state;
mod read_rows;
mod real_model;
mod rust_source;
mod soak;
mod talk;
mod work_items;
mod workspace;

pub use api::{Changes, api, surface};
pub use architecture::paths_in;
pub use arguments::main;
pub use failure::Failure;
pub use flag_names::{flags_in_texts, named_flags};
pub use generate::{Mode, generate};
pub use layers::{layers, violations};
pub use licences::licences;
pub use process_state::forbidden_lines;
pub use workspace::{Crate, Workspace};
