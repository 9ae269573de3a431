//! Decisions without effects, and the ports that adapters fill.
//!
//! Nothing here reads a file, a clock or the environment.

pub mod ports;
pub mod simulate;
