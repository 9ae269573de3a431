//! OpenAI Responses, over HTTP and WebSocket.

mod read;
mod stream;
mod write;

pub(super) use self::read::ask;
pub(super) use self::stream::sse;
pub(crate) use self::stream::{error_event, events};
pub(super) use self::write::plain;
