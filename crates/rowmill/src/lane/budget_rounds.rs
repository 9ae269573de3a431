//! Rounds of jobs under a tight budget: what one round leaves of its reserve pays for the next one.
//!
//! A round may take a day, so a process sends a later one only if a useful share of the requests fits.

use rowmill_types::group_digits;
use rowmill_types::settings::{MAX_COST, RESUME};

use super::job_files::JobPaths;
use super::lane_state::{BatchLane, LaneState};
use crate::control::RunNotice;
use crate::counts::count_phrase;

/// Of the requests that wait for the budget, at least one in this many has to fit into a round.
const USEFUL_SHARE: u64 = 10;

/// What a budget had no room for in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldBack {
    /// The requests that it has room for.
    pub(super) fitting: u64,
    /// All requests that were to be sent.
    pub(super) all: u64,
    /// Whether those that fit are sent.
    pub(super) is_sent: bool,
}

impl LaneState {
    /// Whether so few requests fit the budget that their jobs are not worth waiting for. The first round of a process is
    /// always sent: the user has asked for it.
    pub(super) fn is_round_too_small(&mut self) -> bool {
        let left = self.reserve.refused_requests();
        let open = self.endpoints.values().filter_map(|known| known.open.as_ref());
        let written = self.written.iter().map(|job| job.size.requests);
        let fitting: u64 = open.map(|open| open.size.requests).chain(written).sum();
        let all = fitting + left;
        let is_partial = left > 0 && fitting > 0;
        let is_small = self.has_sent_a_round && is_partial && fitting * USEFUL_SHARE < all;
        self.has_sent_a_round |= fitting > 0;
        self.held_back = is_partial.then_some(HeldBack { fitting, all, is_sent: !is_small });
        is_small
    }

    /// Forgets the jobs of a pass. Their rows do not wait for them: they are worked on again.
    pub(super) fn drop_new_jobs(&mut self, paths: &JobPaths) {
        let open = self.endpoints.values_mut().filter_map(|known| known.open.take());
        open.for_each(|open| paths.remove(&open.key));
        self.written.drain(..).for_each(|job| paths.remove(&job.key));
    }
}

impl BatchLane {
    /// Tells the user how many requests fit the budget, if not all do.
    pub(super) fn notify_held_back(&self, notice: &dyn Fn(RunNotice)) {
        let Some(HeldBack { fitting, all, is_sent }) = self.lock().held_back.take() else { return };
        let (fitting, all) = (group_digits(fitting), count_phrase(all, "request"));
        notice(match is_sent {
            true => RunNotice::info(format!(
                "the budget has room for {fitting} of {all} in this round of jobs; what they cost less than their \
                 maximum is free for the next one"
            )),
            false => RunNotice::warning(format!(
                "the budget has room for only {fitting} of {all}, and a round of jobs may take a day: they are not \
                 sent. Raise {MAX_COST}, or send one round with {RESUME}"
            )),
        });
    }
}
