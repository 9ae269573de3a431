//! Batches: a list of items of the program, a worker, and results in the order of the items.
//!
//! A [`Batch`] is a run of the engine like any other: its items are rows, its worker calls models with
//! the same limits, budgets and retries, and its ledger is the same as that of `rowmill run`.

mod builder;
mod by_function;
mod choose;
mod collect;
mod crew;
mod failure;
mod function;
mod function_runner;
mod go;
mod hearing;
mod item;
mod items;
mod ledger;
mod maps;
mod policy;
mod progress;
mod report;
mod run;
mod settings;
mod shelf;
mod staff;
mod stream;
mod tool_functions;
mod tool_hosts;
mod tools;
mod turnstile;
mod vocabulary;
mod worker;

pub use builder::{Batch, IntoPrompt};
pub use failure::{BatchCause, BatchError, Failure, ItemError};
pub use item::{Done, Item};
pub use ledger::LedgerFolder;
pub use policy::{OnFailure, Raise, ReturnError, ReturnNone};
pub use progress::Progress;
pub use report::{BatchReport, First, Results};
pub use stream::ResultStream;
pub use tool_functions::StatefulTools;
pub use tools::{OfferedTool, Tools};
pub use worker::{Brief, Worker};
