//! State that the steps of one row share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rowmill_core::agent::StepEvent;
use rowmill_core::limits::{Budget, BudgetLimits, Reservation, ReserveOutcome, Spend};
use rowmill_core::ports::{AnswerKey, EventGroup, RowStepEvent};
use rowmill_core::record::CallReport;
use rowmill_types::settings::{MAX_ROW_COST, MAX_ROW_TOKENS, ROW_TIMEOUT};
use rowmill_types::{RowError, RowErrorKind, RowId};
use tokio::sync::Notify;

use crate::RowWorker;
use crate::dropped_steps::DroppedSteps;
use crate::model_turn::NoModelAnswer;
use crate::prepared::PreparedRow;
use crate::request_keys::RowRequestKey;
use crate::row_work::RunContext;
use crate::run_account::RunHalt;

/// A row that is being worked on.
pub(crate) struct RowContext<'a> {
    pub(crate) shared: &'a RunContext,
    /// Its row worker.
    pub(crate) row_worker: Arc<RowWorker>,
    pub(crate) number: u64,
    /// The prefix of the keys of its requests.
    pub(crate) key: RowRequestKey,
    /// Its id, if tools may see it.
    pub(crate) id: Option<RowId>,
    /// Time spent on calls and between attempts, in nanoseconds. Waiting for a ticket does not count.
    worked: AtomicU64,
    /// Whether a model answered.
    pub(crate) answered: AtomicBool,
    /// Whether a tool was called that must not run twice, so that the row must be recorded.
    acted: AtomicBool,
    /// Whether something may have been billed without being reported.
    unknown: AtomicBool,
    /// What identifies its turns, if they are kept.
    mark: Option<(RowId, AnswerKey)>,
    /// The row's budget, if it is limited.
    budget: Option<Mutex<Budget>>,
    /// Notified when a call with a reservation has ended.
    settled: Notify,
    /// The calls of dropped steps; boxed, because most rows have none.
    cut: Mutex<Option<Box<DroppedSteps>>>,
}

impl<'a> RowContext<'a> {
    pub(crate) fn new(
        shared: &'a RunContext,
        row_worker: Arc<RowWorker>,
        prepared: &PreparedRow,
        spent: Spend,
    ) -> Self {
        let limits = shared.worker.row_budget;
        let id = row_worker.tools.is_some().then(|| prepared.id.clone());
        Self {
            key: RowRequestKey::new(&shared.run, &prepared.id, prepared.failed_before),
            id,
            shared,
            row_worker,
            number: prepared.row.number(),
            mark: prepared.question_key.map(|asked| (prepared.id.clone(), asked)),
            worked: AtomicU64::new(0),
            answered: AtomicBool::new(false),
            acted: AtomicBool::new(false),
            unknown: AtomicBool::new(false),
            budget: limits.is_limited().then(|| Mutex::new(Budget::new(limits, spent))),
            settled: Notify::new(),
            cut: Mutex::default(),
        }
    }

    fn worked(&self) -> u64 {
        self.worked.load(Ordering::Relaxed)
    }

    pub(crate) fn add_work(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.worked.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Subtracts time that only the provider is to blame for. Time that other steps of the row worked in the meantime
    /// still counts.
    pub(crate) fn take_back_work(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.worked.fetch_sub(nanoseconds, Ordering::Relaxed);
    }

    /// The rest of `--row-timeout`, if it is set.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let most = self.shared.worker.row_timeout?;
        Some(most.saturating_sub(Duration::from_nanos(self.worked())))
    }

    /// The rest of `--row-timeout` for a call, if it is set. Nothing is called for a row whose time is used up.
    pub(crate) fn time_for_call(&self) -> Result<Option<Duration>, RowError> {
        let left = self.time_left();
        if left != Some(Duration::ZERO) {
            return Ok(left);
        }
        let most = self.shared.worker.row_timeout.unwrap_or_default().as_secs_f64();
        let message = format!("the {most} s of {ROW_TIMEOUT} were used up before the next call");
        Err(RowError::new(RowErrorKind::Timeout, message).with_vocabulary(self.shared.worker.vocabulary))
    }

    pub(crate) fn was_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Notes that something may have been billed without being reported.
    pub(crate) fn mark_maybe_billed(&self, unknown: bool) {
        self.unknown.fetch_or(unknown, Ordering::Relaxed);
    }

    /// Notes that a tool is called that must not run twice.
    pub(crate) fn mark_tool_called(&self) {
        self.acted.store(true, Ordering::Relaxed);
    }

    /// Whether nothing was paid for or done, and nothing may have been.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.was_answered() && !self.acted.load(Ordering::Relaxed) && !self.unknown.load(Ordering::Relaxed)
    }

    /// The error of a row whose run stopped before it was finished. If every call was answered, its outcome is not
    /// unknown.
    pub(crate) fn stopped_error(&self) -> RowError {
        let (kind, message) = if self.unknown.load(Ordering::Relaxed) {
            (RowErrorKind::Interrupted, "the run stopped before the row's last answer arrived")
        } else {
            (
                RowErrorKind::RunStopped,
                "the run stopped before this row was finished; all its calls were answered",
            )
        };
        RowError::new(kind, message)
    }

    /// Records what a dropped step leaves.
    pub(crate) fn record_dropped(&self, takes_in: impl FnOnce(&mut DroppedSteps)) {
        takes_in(locked(&self.cut).get_or_insert_default());
    }

    /// The calls of dropped steps.
    pub(crate) fn take_dropped(&self) -> Option<Box<DroppedSteps>> {
        locked(&self.cut).take()
    }

    /// Names the agent in reports of calls, if there are agents.
    pub(crate) fn add_agent_name(&self, agent_index: usize, reports: &mut [CallReport]) {
        let name = self.agent_name(agent_index);
        if self.row_worker.graph.agents().len() > 1 || !name.is_empty() {
            reports.iter_mut().for_each(|report| report.agent = Some(name.to_owned()));
        }
    }

    /// A row that gets no ticket is released as if it had never been sent, unless something was paid for it already, or
    /// may have been: that must be recorded.
    pub(crate) fn release_or_fail(&self, halt: Option<RunHalt>) -> NoModelAnswer {
        if self.is_untouched() {
            return NoModelAnswer::Released(halt);
        }
        NoModelAnswer::Failed(self.stopped_error(), halt)
    }

    /// What the row may still spend, if calls in flight turn out to cost nothing.
    pub(crate) fn remaining_budget(&self) -> BudgetLimits {
        self.budget.as_ref().map(|budget| locked(budget).remaining().whole).unwrap_or_default()
    }

    /// Reserves the worst case of a call in the row's budget. If other calls of the row may leave enough room for it,
    /// this waits for their end, so that the outcome does not depend on which call is faster.
    pub(crate) async fn set_aside_share(
        &self,
        worst: impl FnOnce() -> Spend,
    ) -> Result<Option<RowReservation<'_>>, RowError> {
        match &self.budget {
            // Boxed, because most rows have no budget of their own and are moved with all that they might need.
            Some(budget) => Box::pin(self.reserve(budget, worst())).await.map(Some),
            None => Ok(None),
        }
    }

    async fn reserve<'s>(
        &'s self,
        budget: &'s Mutex<Budget>,
        worst: Spend,
    ) -> Result<RowReservation<'s>, RowError> {
        loop {
            // Registered before the check, so that no notification is missed.
            let settled = self.settled.notified();
            let reserved = locked(budget).reserve(worst);
            match reserved {
                ReserveOutcome::Granted(reservation) => {
                    let settled = &self.settled;
                    return Ok(RowReservation { budget, settled, reservation: Some(reservation) });
                }
                ReserveOutcome::Never => {
                    let error = beyond(&locked(budget), worst);
                    return Err(error.with_vocabulary(self.shared.worker.vocabulary));
                }
                ReserveOutcome::Later => settled.await,
            }
        }
    }

    /// Records a step event of the row, if turns are kept. The ledger has it when this returns.
    pub(crate) async fn record_event(&self, step_event: &StepEvent) -> Result<(), RunHalt> {
        if self.mark.is_none() {
            return Ok(());
        }
        let mut line = Vec::with_capacity(512);
        step_event.write(&mut line);
        self.append_event_line(line).await
    }

    /// Records a step event that is serialized already.
    pub(crate) async fn append_event_line(&self, line: Vec<u8>) -> Result<(), RunHalt> {
        let Some((id, asked)) = self.mark.clone() else { return Ok(()) };
        let line = self.shared.worker.redactor.redact_json_line(line);
        let turns = [RowStepEvent { row: self.number, id, answer_key: asked, step_event: line }];
        let appended =
            self.shared.account.append(EventGroup { turns: &turns, ..EventGroup::default() }).await;
        match appended.map(|appended| appended.problem) {
            Ok(None) => Ok(()),
            Ok(Some(problem)) | Err(problem) => Err(RunHalt::Problem(problem)),
        }
    }
}

/// The worst case of a call that was sent. If the call is dropped, all of it counts.
pub(crate) struct RowReservation<'s> {
    budget: &'s Mutex<Budget>,
    settled: &'s Notify,
    reservation: Option<Reservation>,
}

impl RowReservation<'_> {
    /// The call has ended and used this much; `None` if unknown.
    pub(crate) fn settle(mut self, actual: Option<Spend>) {
        self.give_back(actual);
    }

    fn give_back(&mut self, actual: Option<Spend>) {
        if let Some(reservation) = self.reservation.take() {
            locked(self.budget).settle(reservation, actual);
            self.settled.notify_waiters();
        }
    }
}

impl Drop for RowReservation<'_> {
    fn drop(&mut self) {
        self.give_back(None);
    }
}

/// The error of a row that may not make its next call.
fn beyond(budget: &Budget, worst: Spend) -> RowError {
    let (spent, limits) = (budget.spent(), budget.limits());
    let mut bounds = Vec::new();
    bounds.extend(limits.cost.map(|most| {
        format!("{} spent and up to {} more, of {most} ({MAX_ROW_COST})", spent.cost, worst.cost)
    }));
    bounds.extend(limits.tokens.map(|most| {
        format!("{} tokens used and up to {} more, of {most} ({MAX_ROW_TOKENS})", spent.tokens, worst.tokens)
    }));
    let message = format!("the next call could exceed the limits of the row: {}", bounds.join("; "));
    RowError::new(RowErrorKind::RowLimit, message)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
