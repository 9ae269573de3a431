//! All integration tests of this crate, in one program: it is linked once.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what fails here fails the test")]

mod conversations;
mod counting;
mod faults;
mod files;
mod limits;
mod outages;
mod protocols;
mod refusals;
mod running;
mod scripts;
mod support;
mod tools;
