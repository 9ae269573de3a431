//! Pacing of calls: what may be sent now, and what has to wait for what.
//!
//! One [`Limiter`] per provider, account and model decides; [`Breaker`] distinguishes an outage from a bad row;
//! [`Budget`] keeps the total below the user's limit, and [`CallSize`] limits the length of answers so that the budget
//! does not slow the calls down. There is no clock: every call gets the time since a start that the caller chose.

mod breaker;
mod bucket;
mod budget;
mod estimate;
mod limiter;
mod output_cap;
mod parallel_json;
mod pause;
mod rates;
mod refusals;
mod sent;
mod share;
mod slots;
mod wait;
mod window;

pub use breaker::{Blame, Breaker, FailedCall, Passage};
pub use budget::{Budget, BudgetLimits, Reservation, Reserved, Spend};
pub use limiter::{Admission, Charge, Limiter, Need};
pub use output_cap::{AnswerLengths, AnswerNeeds, BudgetLeft, CallSize};
pub use rates::{Pace, RateFlags};
pub use refusals::Refusal;
pub use share::{LONGEST_PACE, ShareId, ShareSettings};
pub use slots::Parallel;
pub use wait::{Wait, WaitReason};
