//! When a run ends before its input does.

use std::time::Duration;

use rowmill_core::limits::Spend;
use rowmill_core::ports::Verdict;
use rowmill_types::{CallFailure, Problem, ProblemCode};

use crate::StopRules;
use crate::ask::is_fatal;
use crate::work::Ended;

/// Why a run ended before its input did.
#[derive(Debug, Clone, PartialEq)]
pub enum StopCause {
    /// No further row could succeed, or something could not be read or written.
    Problem(Problem),
    /// It was stopped from outside.
    Interrupted,
    /// As many rows failed as were allowed.
    MaxErrors(u64),
    /// A larger share of rows failed than was allowed.
    ErrorRate {
        /// Rows that failed.
        failed: u64,
        /// Of so many.
        ended: u64,
        /// The share that was allowed.
        allowed: f64,
    },
    /// The time was over.
    Deadline(Duration),
    /// The result that was wanted is there.
    FirstResult,
    /// The next call could have passed the budget.
    Budget {
        /// What was spent, or may have been.
        spent: Spend,
        /// What the call could have used.
        worst: Spend,
    },
}

impl StopCause {
    /// Whether `other` should be told in its place. A problem outranks a wish.
    pub(crate) fn yields_to(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Interrupted, Self::Problem(_)))
    }
}

/// Watches rows end and decides whether the run goes on.
#[derive(Debug)]
pub(crate) struct Policy {
    rules: StopRules,
    /// Rows that failed, in the ledger or on the way there.
    failed: u64,
    ended: u64,
    last_success: Option<Duration>,
}

impl Policy {
    pub(crate) fn new(rules: StopRules) -> Self {
        Self { rules, failed: 0, ended: 0, last_success: None }
    }

    pub(crate) fn rules(&self) -> &StopRules {
        &self.rules
    }

    /// Why a run is not even begun.
    pub(crate) fn at_start(&self) -> Option<StopCause> {
        let no_errors = (self.rules.max_errors == Some(0)).then_some(StopCause::MaxErrors(0));
        no_errors.or_else(|| self.rules.deadline.filter(Duration::is_zero).map(StopCause::Deadline))
    }

    /// Notes that calls were answered, before the rows themselves are judged.
    pub(crate) fn saw_answers<'a>(&mut self, ended: impl Iterator<Item = &'a Ended>) {
        let answered = ended.filter(|row| row.calls.iter().any(|call| call.error.is_none()));
        self.last_success = answered.map(|row| row.end).max().or(self.last_success);
    }

    /// Why the run ends after this row, if it does.
    pub(crate) fn heed(&mut self, ended: &Ended) -> Option<StopCause> {
        self.ended += 1;
        let ok = ended.result().is_ok();
        self.failed += u64::from(!ok);
        if let Some(problem) = self.run_stopper(ended) {
            return Some(StopCause::Problem(problem));
        }
        if self.rules.first_result && ok && ended.verdict == Verdict::Result {
            return Some(StopCause::FirstResult);
        }
        if let Some(limit) = self.rules.max_errors.filter(|&limit| self.failed >= limit) {
            return Some(StopCause::MaxErrors(limit));
        }
        let (allowed, after) = self.rules.max_error_rate?;
        let (failed, ended) = (self.failed, self.ended);
        let over = ended >= after.max(1) && failed as f64 > allowed * ended as f64;
        over.then_some(StopCause::ErrorRate { failed, ended, allowed })
    }

    /// The problem that makes every further row pointless, if this row met one.
    fn run_stopper(&self, ended: &Ended) -> Option<Problem> {
        let error = ended.failure.as_ref()?;
        let (code, hint) = match error.failure {
            CallFailure::UnknownModel => {
                (ProblemCode::UnknownModel, "correct `--model` and run again with `--resume`")
            }
            _ if is_fatal(error) => (
                ProblemCode::Unauthorized,
                "set the right key (`rowmill models` shows where) and run again with `--resume`",
            ),
            // Nobody answered this row from its first try to its last, nor any other meanwhile.
            CallFailure::Connect if self.last_success.is_none_or(|success| success < ended.start) => (
                ProblemCode::Unreachable,
                "start the server or correct the base URL (`rowmill models` shows it), then run again with `--resume`",
            ),
            _ => return None,
        };
        Some(Problem::new(code, error.message.clone()).hint(hint))
    }
}
