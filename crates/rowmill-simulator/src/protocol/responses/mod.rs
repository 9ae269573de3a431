//! OpenAI Responses, over HTTP and WebSocket.

mod read;
mod stream;
mod write;

pub(super) use self::read::read_responses_request;
pub(super) use self::stream::sse;
pub(crate) use self::stream::{error_event, events};
pub(super) use self::write::plain;
