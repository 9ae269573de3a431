//! Anthropic Messages.

mod read;
mod write;

pub(super) use self::read::read_messages_request;
pub(super) use self::write::{error, render};
