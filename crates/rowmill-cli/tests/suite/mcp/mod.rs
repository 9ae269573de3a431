//! Agents with MCP servers, driven by the command over stdio and HTTP.
mod cards;
mod completion;
mod ends;
mod kit;
mod people;
mod recovery;
mod sign_in;
mod starts;
