//! OpenAI Chat Completions.

mod read;
mod write;

pub(super) use self::read::read_chat_request;
pub(super) use self::write::{error, events, plain};
