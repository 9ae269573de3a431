//! Python functions as tools and hooks, with real Python processes.

mod calls;
mod contract;
mod hooks;
mod problems;
mod processes;
mod schemas;
mod support;
