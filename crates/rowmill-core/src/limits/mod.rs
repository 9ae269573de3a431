//! Pacing of calls: what may be sent now, and what has to wait for what.
//!
//! One [`RateLimiter`] per provider, account and model decides; [`CircuitBreaker`] distinguishes an outage from a bad row;
//! [`Budget`] keeps the total below the user's limit, and [`CallSize`] limits the length of answers so that the budget
//! does not slow the calls down. There is no clock: every call gets the time since a start that the caller chose.

mod breaker;
mod bucket;
mod budget;
mod estimate;
mod limiter;
mod minute_limits;
mod output_cap;
mod parallel_json;
mod pause;
mod refusals;
mod sent_history;
mod share;
mod slots;
mod wait;
mod window;

pub use breaker::{BreakerDecision, CircuitBreaker, FailedCall, FailureBlame};
pub use budget::{Budget, BudgetLimits, Reservation, ReserveOutcome, Spend};
pub use limiter::{AdmissionDecision, CallNeed, RateLimitCharge, RateLimiter};
pub use minute_limits::{MinuteLimits, PaceMode};
pub use output_cap::{AnswerLengthNeeds, AnswerLengths, CallSize, RemainingBudget};
pub use refusals::RefusalScope;
pub use share::{LONGEST_PACE, LimiterRunId, RunPaceSettings};
pub use slots::CallParallelism;
pub use wait::{CallWait, WaitReason};
