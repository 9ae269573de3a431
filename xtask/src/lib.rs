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
mod plain_words;
mod printer;
mod process_state;
mod read_rows;
mod real_model;
mod rust_source;
mod soak;
mod work_items;
mod workspace;

pub use api::{ApiChanges, check_api, public_surface};
pub use architecture::paths_in;
pub use arguments::main;
pub use failure::TaskFailure;
pub use flag_names::{find_named_flags, flags_in_texts};
pub use generate::{DocumentMode, generate_documents};
pub use layers::{check_layers, layer_violations};
pub use licences::check_licences;
pub use plain_words::{avoided_in_code, avoided_in_page};
pub use process_state::forbidden_lines;
pub use workspace::{Workspace, WorkspaceCrate};
