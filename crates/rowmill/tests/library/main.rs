//! Batches from code, with real parts: the engine, the simulator over HTTP, ledgers on disk.
//!
//! Modules and tests use Langroid's names where it has them, so that its users can find the equivalent
//! here.

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
