//! Answers that were paid for, and that no row wants any more: rows were changed or removed, or the settings were, while
//! a job was at the provider. They count like all others, because the provider bills them.

use rowmill_core::jobs::JobRecord;
use rowmill_core::limits::Spend;
use rowmill_types::{Problem, TokenUsage};

use super::lane_state::{BatchLane, LaneState};
use crate::control::RunNotice;
use crate::counts::count_phrase;
use crate::report::UnusedAnswers;

impl BatchLane {
    /// Counts the answers that no row has read in a pass that has reached its end. Returns what they cost.
    pub(crate) fn count_unused(&self) -> Result<Spend, Problem> {
        let mut state = self.lock();
        let (mut unused, mut spent) = (UnusedAnswers::default(), Spend::default());
        state.index.visit_unread(|key, line| {
            let Some(job) = state.jobs.get(key) else { return };
            let Some(usage) = state.usage_of(job, line) else { return };
            let cost = job.price.map(|price| price.cost(&usage)).unwrap_or_default();
            unused.answers += 1;
            unused.cost += cost;
            spent = spent.plus(Spend { cost, tokens: usage.tokens() });
        })?;
        state.unused.answers += unused.answers;
        state.unused.cost += unused.cost;
        Ok(spent)
    }

    /// Tells the user how many answers were not used, if there are any.
    pub(super) fn notify_unused(&self, notice: &dyn Fn(RunNotice)) {
        let UnusedAnswers { answers, cost } = self.lock().unused;
        if answers > 0 {
            let (answers, were) =
                (count_phrase(answers, "answer"), if answers == 1 { "was" } else { "were" });
            notice(RunNotice::warning(format!(
                "{answers} of batch jobs {were} paid for ({cost}) and not used: the rows or the settings were changed \
                 while the jobs were at the provider"
            )));
        }
    }
}

impl LaneState {
    /// What an answer used, if a line of results has one.
    fn usage_of(&self, job: &JobRecord, line: &[u8]) -> Option<TokenUsage> {
        let result = self.api_for(job)?.read_result(line.trim_ascii()).ok()?;
        result.outcome.ok()?.usage
    }
}
