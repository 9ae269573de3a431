//! How one call is answered.

use serde_json::Value;

use crate::conversation::SimulatedCallView;
use crate::fault::SimulatedFault;
use crate::turn::ScriptedTurn;

/// How one call is answered, by [`crate::SimulatorScript::answer_prompts`] or [`crate::SimulatorScript::answer_calls`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SimulatedAnswer {
    /// As without a script: a value for the schema, or an echo of the prompt.
    Default,
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
    Turn(Box<ScriptedTurn>),
    /// With a fault.
    Fail(SimulatedFault),
}

impl From<ScriptedTurn> for SimulatedAnswer {
    fn from(turn: ScriptedTurn) -> Self {
        Self::Turn(Box::new(turn))
    }
}

pub(crate) type AnswerFunction = dyn Fn(&str, u64) -> SimulatedAnswer + Send + Sync;
pub(crate) type ReplyFunction = dyn Fn(&SimulatedCallView<'_>) -> SimulatedAnswer + Send + Sync;
