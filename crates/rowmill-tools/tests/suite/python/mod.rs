//! Python functions as tools and hooks, with real Python processes.

mod calls;
mod contract;
mod hooks;
mod problems;
mod processes;
mod schema_models;
mod schemas;
mod support;
