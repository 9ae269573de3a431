//! A row in agents and workflows: the exact texts of all requests, and the result.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail the test")]

mod chain;
mod children;
mod evaluator_optimizer;
mod graph_building;
mod harness;
mod maker;
mod orchestrator;
mod parallel;
mod replay;
mod router;
mod talk;
mod tools;
