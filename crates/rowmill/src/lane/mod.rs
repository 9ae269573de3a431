//! The batch lane: the same run, through a provider's batch API.
//!
//! A run makes several passes over its input. In a pass, a model does not call its provider: it looks the answer up in
//! the results of finished jobs, or writes the request to a job file and parks the row ([`ParkingModel`]). Between two
//! passes, jobs are submitted, polled and downloaded ([`JobDriver`]). A pass is an ordinary resume, so a process may end
//! at any point ([`run_in_rounds`]).

mod budget_rounds;
mod cancelling;
mod choice;
mod custom_id;
mod driver;
mod ending;
mod failures;
mod handle;
mod job_files;
mod journal;
mod lane_state;
mod live_runs;
mod options;
mod outages;
mod outcomes;
mod parking_model;
mod passes;
mod queue_room;
mod remembering;
mod reserve;
mod result_files;
mod results;
mod submission;
mod truncated;
mod unused;

pub use handle::BatchLaneHandle;
pub use options::{BatchScope, Lane, LaneOptions};

pub(crate) use choice::{ChosenLane, choose_lane};
pub(crate) use ending::remove_leftover_job_files;
pub(crate) use journal::{BATCH_JOB_EVENT, read_jobs};
pub(crate) use lane_state::{BatchLane, EndpointPlan};
pub(crate) use live_runs::{check_no_jobs_out, forget_unpaid_jobs};
pub(crate) use passes::run_in_rounds;
pub(crate) use submission::refusal_reason;
