//! How one call is answered.

use serde_json::Value;

use crate::conversation::Seen;
use crate::fault::Fault;
use crate::turn::Turn;

/// How one call is answered, by [`crate::Script::answer`] or [`crate::Script::reply`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// As without a script: a value for the schema, or an echo of the prompt.
    Made,
    /// With this text.
    Text(String),
    /// With this JSON.
    Json(Value),
    /// With tool calls.
    Calls {
        /// The text beside them; often empty.
        text: String,
        /// The names of the tools and the arguments, in order.
        calls: Vec<(String, Value)>,
    },
    /// With a turn described in full.
    Turn(Box<Turn>),
    /// With a fault.
    Fail(Fault),
}

impl From<Turn> for Answer {
    fn from(turn: Turn) -> Self {
        Self::Turn(Box::new(turn))
    }
}

pub(crate) type AnswerFunction = dyn Fn(&str, u64) -> Answer + Send + Sync;
pub(crate) type ReplyFunction = dyn Fn(&Seen<'_>) -> Answer + Send + Sync;
