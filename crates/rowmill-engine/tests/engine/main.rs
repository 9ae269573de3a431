//! The engine with fakes on every port, in virtual time.

mod acting;
mod agents;
mod answers;
mod budget;
mod driving;
mod faults;
mod files;
mod limits;
mod locks;
mod memory;
mod output_caps;
mod panics;
mod provider;
mod resuming;
mod sharing;
mod stopping;
mod store;
mod strays;
mod support;
mod virtual_time;
