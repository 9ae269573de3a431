//! When a run ends before its input does.

use std::time::Duration;

use rowmill_core::limits::Spend;
use rowmill_core::ports::ResultVerdict;
use rowmill_types::actions::{RUN_AGAIN, RUN_AGAIN_CHANGED, SEND_REGARDLESS};
use rowmill_types::settings::{MODEL, RESUME};
use rowmill_types::{CallFailure, Problem, ProblemCode, RowError, RowId};

use crate::model_turn::is_fatal;
use crate::row_work::EndedRow;
use crate::{ErrorRateLimit, StopRules};

/// Why a run ended before its input did.
#[derive(Debug, Clone, PartialEq)]
pub enum StopCause {
    /// No further row could succeed, or something could not be read or written.
    Problem(Problem),
    /// It was stopped from outside.
    Interrupted,
    /// The allowed number of rows failed.
    MaxErrors(u64),
    /// More than the allowed share of rows failed.
    ErrorRate {
        /// Rows that failed.
        failed: u64,
        /// Rows that have ended.
        ended: u64,
        /// The allowed share.
        allowed: f64,
    },
    /// The time limit was reached.
    Deadline(Duration),
    /// The wanted result is there.
    FirstResult,
    /// The next call could have exceeded the budget.
    Budget {
        /// What was spent, or may have been.
        spent: Spend,
        /// What the call could have used.
        worst: Spend,
    },
}

impl StopCause {
    /// The same, with the amount spent once the calls that were in flight at the stop have ended.
    pub(crate) fn with_final_spend(self, spent: Spend) -> Self {
        match self {
            Self::Budget { worst, .. } => Self::Budget { spent, worst },
            other => other,
        }
    }

    /// Whether `other` should be reported instead. A problem takes precedence over a request.
    pub(crate) fn yields_to(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Interrupted, Self::Problem(_)))
    }
}

/// Watches rows end and decides whether the run continues.
#[derive(Debug)]
pub(crate) struct StopPolicy {
    rules: StopRules,
    /// Failed rows that are in the ledger or about to be.
    failed: u64,
    ended: u64,
    last_success: Option<Duration>,
    /// The failures so far, by reason, while no row is ok.
    reasons: Vec<SimilarFailures>,
}

/// Among the first rows, one in this many may fail for a different reason.
const OTHERS: u64 = 10;

/// Rows that failed for the same reason.
#[derive(Debug)]
struct SimilarFailures {
    error: RowError,
    number: u64,
    id: RowId,
    rows: u64,
}

impl StopPolicy {
    pub(crate) fn new(rules: StopRules) -> Self {
        Self { rules, failed: 0, ended: 0, last_success: None, reasons: Vec::new() }
    }

    pub(crate) fn rules(&self) -> &StopRules {
        &self.rules
    }

    /// Why a run does not even start.
    pub(crate) fn stop_before_start(&self) -> Option<StopCause> {
        let no_errors = (self.rules.max_errors == Some(0)).then_some(StopCause::MaxErrors(0));
        no_errors.or_else(|| self.rules.deadline.filter(Duration::is_zero).map(StopCause::Deadline))
    }

    /// Notes that calls were answered, before the rows themselves are counted.
    pub(crate) fn note_answers<'a>(&mut self, ended: impl Iterator<Item = &'a EndedRow>) {
        let answered = ended.filter(|row| row.calls.iter().any(|call| call.error.is_none()));
        self.last_success = answered.map(|row| row.end).max().or(self.last_success);
    }

    /// Why the run ends after this row, if it does.
    pub(crate) fn check_row_end(&mut self, ended: &EndedRow) -> Option<StopCause> {
        self.ended += 1;
        let ok = ended.result().is_ok();
        self.failed += u64::from(!ok);
        if let Some(problem) = self.run_stopper(ended) {
            return Some(StopCause::Problem(problem));
        }
        if self.rules.first_result && ok && ended.verdict == ResultVerdict::Result {
            return Some(StopCause::FirstResult);
        }
        if let Some(limit) = self.rules.max_errors.filter(|&limit| self.failed >= limit) {
            return Some(StopCause::MaxErrors(limit));
        }
        self.watch_first_failures(ended);
        let ErrorRateLimit { share: allowed, after } = self.rules.max_error_rate?;
        let (failed, ended) = (self.failed, self.ended);
        let over = ended >= after.max(1) && failed as f64 > allowed * ended as f64;
        over.then_some(StopCause::ErrorRate { failed, ended, allowed })
    }

    /// The problem if the first rows have all failed, nearly all of them for the same reason. To be called before a
    /// further row is sent: if none is left, there is nothing to stop.
    pub(crate) fn same_failure(&self) -> Option<Problem> {
        let wanted = self.rules.same_failure?;
        let failed: u64 = self.reasons.iter().map(|alike| alike.rows).sum();
        let common = self.reasons.iter().max_by_key(|alike| alike.rows)?;
        let is_common = failed >= wanted && (failed - common.rows) * OTHERS <= failed;
        is_common.then(|| common.problem(failed))
    }

    /// The first row that is ok ends the watch, and so do failures for many different reasons.
    fn watch_first_failures(&mut self, ended: &EndedRow) {
        // A row that was asked in an earlier run proves nothing about this one.
        if self.rules.same_failure.is_none() || ended.again {
            return;
        }
        let Err(error) = ended.result() else {
            self.rules.same_failure = None;
            return;
        };
        if let Some(alike) = self.reasons.iter_mut().find(|alike| alike.is_like(error)) {
            alike.rows += 1;
        } else if self.reasons.len() as u64 >= OTHERS {
            self.rules.same_failure = None;
        } else {
            let (error, number, id) = (error.clone(), ended.number, ended.id.clone());
            self.reasons.push(SimilarFailures { error, number, id, rows: 1 });
        }
    }

    /// The problem that makes every further row pointless, if this row met one.
    fn run_stopper(&self, ended: &EndedRow) -> Option<Problem> {
        // A result of a batch job is about its row alone.
        let error = ended.failure.as_ref().filter(|error| error.batch.is_none())?;
        let (code, hint) = match error.failure {
            CallFailure::UnknownModel => {
                (ProblemCode::UnknownModel, format!("correct {MODEL} and {RUN_AGAIN_CHANGED}"))
            }
            CallFailure::UnknownPath => (
                ProblemCode::UnknownModel,
                format!(
                    "correct the base URL (`rowmill models` shows it), or else {MODEL}, and {RUN_AGAIN_CHANGED}"
                ),
            ),
            _ if is_fatal(error) => (
                ProblemCode::Unauthorized,
                format!("set the right key (`rowmill models` shows where) and {RUN_AGAIN}"),
            ),
            // The provider did not answer this row from its first attempt to its last, nor any other row meanwhile.
            CallFailure::Connect if self.last_success.is_none_or(|success| success < ended.start) => (
                ProblemCode::Unreachable,
                format!(
                    "start the server or correct the base URL (`rowmill models` shows it), then {RUN_AGAIN}"
                ),
            ),
            CallFailure::TooManyOpenFiles
                if self.last_success.is_none_or(|success| success < ended.start) =>
            {
                (
                    ProblemCode::OpenFiles,
                    format!("raise the limit with `ulimit -n 1024` in the same shell, then {RUN_AGAIN}"),
                )
            }
            _ => return None,
        };
        Some(Problem::new(code, error.message.clone()).hint(hint))
    }
}

impl SimilarFailures {
    /// Messages are not compared: they may quote the row and its answers.
    fn is_like(&self, error: &RowError) -> bool {
        let first = &self.error;
        first.kind == error.kind && first.status == error.status && first.code == error.code
    }

    fn problem(&self, failed: u64) -> Problem {
        let Self { error, number, id, rows } = self;
        let named = match id {
            RowId::Text(id) => format!("row {number} (id `{id}`)"),
            RowId::Number(_) => format!("row {number}"),
        };
        let with = if *rows == failed { String::new() } else { format!(", {rows} of them") };
        let message = format!("stopped: the first {failed} rows all failed{with} with {}", error.kind);
        let advice = error.kind.advice().with_mention_markers();
        let advice = advice.trim_end_matches('.');
        Problem::new(ProblemCode::SameFailure, message)
            .cause(format!("{named}: {}", error.message.with_mention_markers()))
            .hint(format!("{advice}. Retry these rows with {RESUME}; {SEND_REGARDLESS}"))
    }
}
