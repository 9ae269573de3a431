//! The engine with fakes on every port, in virtual time.

mod driving;
mod provider;
mod support;
mod virtual_time;
