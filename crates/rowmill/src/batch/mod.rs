//! Batches: a list of items of the program, a worker, and results in the order of the items.
//!
//! A [`Batch`] is a run of the engine like any other: its items are rows, its worker calls models with
//! the same limits, budgets and retries, and its ledger is the same as that of `rowmill run`.

mod backpressure;
mod batch_workers;
mod builder;
mod callbacks;
mod drive;
mod failure;
mod function_model;
mod function_runner;
mod item;
mod item_table;
mod items;
mod ledger;
mod per_item_workers;
mod policy;
mod program_maps;
mod progress;
mod report;
mod result_collector;
mod row_worker;
mod run;
mod settings;
mod stream;
mod tool_functions;
mod tool_hosts;
mod tools;
mod vocabulary;
mod worker;
mod worker_function;

pub use builder::{Batch, IntoPrompt};
pub use failure::{BatchError, BatchFailureCause, FunctionFailure, ItemError};
pub use item::{AnsweredItem, BatchItem};
pub use ledger::LedgerOptions;
pub use policy::{OnFailure, ReturnError, ReturnNone, StopAtFirstFailure};
pub use progress::BatchProgress;
pub use report::{BatchReport, BatchResults, FirstBatchResult};
pub use stream::ResultStream;
pub use tool_functions::StatefulTools;
pub use tools::{OfferedTool, WorkerTools};
pub use worker::{ModelRequirements, Worker};
