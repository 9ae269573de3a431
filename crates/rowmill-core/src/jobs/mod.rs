//! Jobs of a provider's batch API: what is known of each, and what to do next. Decisions only.
//!
//! A job goes from one stage to the next, and every stage is recorded before the next begins. Whenever a process ends,
//! the next one finds in the records what was done, and continues from there.

mod record;
mod size;
mod switch;
mod table;
mod timing;

pub use record::{JobKey, JobRecord, JobStage, RefusedJobHandling};
pub use size::{JobSize, JobSizeLimits, SizeVerdict};
pub use switch::{LivePace, SwitchFacts};
pub use table::{JobStep, JobTable, QueueUse};
pub use timing::{PollPace, SubmitPause};
