//! Batches from code, with real parts: the engine, the simulator over HTTP, ledgers on disk.
//!
//! Modules and tests are named after what Langroid calls a thing where it has a name for it, so
//! that whoever comes from there finds what happens here.

mod budgets;
mod cancel;
mod crash;
mod environments;
mod functions;
mod handle_exceptions;
mod input_map;
mod isolation;
mod keys;
mod kit;
mod ledger;
mod ledger_ids;
mod limits;
mod many_runs;
mod order;
mod output_map;
mod problems;
mod process;
mod progress;
mod secrets;
mod settings;
mod stop_on_first_result;
mod streams;
mod tools;
mod turns;
mod typed;
mod workers;
