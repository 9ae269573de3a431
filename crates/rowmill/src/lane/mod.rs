//! The batch lane: the same run, through a provider's batch API.
//!
//! A run makes several passes over its input. In a pass, a model does not call its provider: it looks the answer up in
//! the results of finished jobs, or writes the request to a job file and parks the row ([`ParkingModel`]). Between two
//! passes, jobs are submitted, polled and downloaded ([`JobDriver`]). A pass is an ordinary resume, so a process may end
//! at any point ([`run_in_rounds`]). Some passes make live calls ([`LiveModel`]): for repairs, if the user wants that, and for
//! what jobs have not finished when the deadline is near.

mod adapters;
mod budget_rounds;
mod cancelling;
mod choice;
mod custom_id;
mod driver;
mod ending;
mod endpoint_plan;
mod failures;
mod handle;
mod job_files;
mod jobs_out;
mod journal;
mod lane_state;
mod live_model;
mod live_runs;
mod opening;
mod options;
mod outages;
mod outcomes;
mod parking_model;
mod passes;
mod phase;
mod queue_room;
mod remembering;
mod reserve;
mod result_files;
mod results;
mod submission;
mod switching;
mod truncated;
mod unused;
mod waiting;

pub use handle::BatchLaneHandle;
pub use options::{BatchContinuationMode, Lane, LaneOptions, RepairLane};

pub(crate) use choice::{ChosenLane, choose_lane};
pub(crate) use ending::remove_leftover_job_files;
pub(crate) use endpoint_plan::EndpointPlan;
pub(crate) use journal::{RecordedJobs, is_known_event, read_jobs};
pub(crate) use lane_state::BatchLane;
pub(crate) use live_runs::{check_no_jobs_out, forget_unpaid_jobs};
pub(crate) use passes::run_in_rounds;
pub(crate) use submission::refusal_reason;

#[cfg(test)]
mod switch_tests;
