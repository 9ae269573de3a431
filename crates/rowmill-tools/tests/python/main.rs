//! Python functions as tools and hooks, with real Python processes.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up fails the test")]

mod calls;
mod contract;
mod hooks;
mod problems;
mod processes;
mod schemas;
mod support;
