//! Anthropic Messages.

mod read;
mod write;

pub(super) use self::read::ask;
pub(super) use self::write::{error, render};
