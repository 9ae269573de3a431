//! Simulates a model provider on a loopback port, for tests, benchmarks and demonstrations.
//!
//! It uses the vendors' protocols over real HTTP, so that all parts of a client are exercised: connections,
//! framing, streaming and failures. It implements rate limits, quotas and a prompt cache like the vendors,
//! counts what it would have charged, and injects faults on request. It serves the vendors' batch APIs, too.

mod admission;
mod answer;
mod answer_hold;
mod answer_plan;
mod batch;
mod bucket;
mod call_log;
mod call_marker;
mod canned_answers;
mod conditions;
mod conversation;
mod deliver;
mod distribution;
mod fault;
mod fault_marker;
mod http_request;
mod limiter;
mod limits;
mod outage;
mod outgoing_answer;
pub mod parse_flags;
mod prompt_cache;
mod protocol;
mod quota;
mod rate_headers;
mod recorded_call;
mod recorded_file;
mod recorder;
mod reply;
mod rules;
mod script;
mod server;
mod simulator;
mod simulator_state;
mod stats;
mod stored_uploads;
mod thought;
mod tokens;
mod turn;
mod upload_form;
mod websocket;

pub use answer::SimulatedAnswer;
pub use batch::{BatchRequestKind, HoldMoment, SimulatedBatchStats, SimulatedBatches};
pub use conditions::SimulatorConditionChange;
pub use conversation::{
    RecordedMessage, RecordedRole, RecordedToolCall, RecordedToolResult, RecordedToolSpec, SimulatedCallView,
};
pub use distribution::RandomDistribution;
pub use fault::{FaultTrigger, SimulatedFault};
pub use http_request::read_request;
pub use limits::{LimitKind, SimulatedLimits};
pub use outage::OutageKind;
pub use recorded_call::RecordedCall;
pub use recorded_file::{FileTransfer, RecordedFile};
pub use recorder::RecordedRequest;
pub use rowmill_core::cost::Price;
pub use rowmill_types::Citation;
pub use rules::SimulatedAnswerRules;
pub use script::SimulatorScript;
pub use simulator::Simulator;
pub use stats::{MinuteStats, SimulatorStats};
pub use tokens::Tokenizer;
pub use turn::ScriptedTurn;
