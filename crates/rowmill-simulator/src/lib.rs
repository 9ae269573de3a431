//! Simulates a model provider on a loopback port, for tests, benchmarks and demonstrations.
//!
//! It uses the vendors' protocols over real HTTP, so that all parts of a client are exercised: connections,
//! framing, streaming and failures. It implements rate limits, quotas and a prompt cache like the vendors,
//! counts what it would have charged, and injects faults on request.

mod admission;
mod answer;
mod bucket;
mod call_log;
mod call_marker;
mod call_seen;
mod conditions;
mod conversation;
mod deliver;
mod distribution;
mod exchange;
mod fault;
mod file_seen;
mod form;
mod gate;
mod incoming;
mod instant;
mod limiter;
mod limits;
mod marker;
pub mod notation;
mod outage;
mod outgoing;
mod prompt_cache;
mod protocol;
mod quota;
mod rate_headers;
mod recorder;
mod reply;
mod rules;
mod script;
mod server;
mod shared;
mod simulator;
mod stats;
mod stored;
mod thought;
mod tokens;
mod turn;
mod websocket;

pub use answer::Answer;
pub use call_seen::CallSeen;
pub use conditions::Change;
pub use conversation::{Seen, SeenCall, SeenMessage, SeenResult, SeenRole, SeenTool};
pub use distribution::Distribution;
pub use fault::{Fault, When};
pub use file_seen::{FileSeen, Sent};
pub use incoming::read_request;
pub use limits::{Limits, Measure};
pub use outage::OutageKind;
pub use recorder::RequestSeen;
pub use rowmill_core::cost::Price;
pub use rowmill_types::Citation;
pub use rules::Rules;
pub use script::Script;
pub use simulator::Simulator;
pub use stats::{Minute, Stats};
pub use tokens::Tokenizer;
pub use turn::Turn;
