//! All integration tests of this crate in one binary, which is linked only once.

#![expect(clippy::panic, clippy::unwrap_used, reason = "what fails here fails the test")]

mod batch_damage;
mod batch_files;
mod batch_holds;
mod batch_inline;
mod batch_lives;
mod batch_pages;
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
