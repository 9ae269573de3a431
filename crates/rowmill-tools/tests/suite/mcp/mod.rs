//! MCP servers, real ones and a test server with faults on demand.
mod calls;
mod contract;
mod ends;
mod faults;
mod kit;
mod network;
mod offers;
mod real;
