//! Agents with MCP servers, driven by the command over stdio and HTTP.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../faults_support/mod.rs"]
mod faults_support;

mod cards;
mod ends;
mod kit;
mod recovery;
mod starts;
