//! State that the steps of one row share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rowmill_core::agent::Happening;
use rowmill_core::limits::{Budget, BudgetLimits, Reservation, Reserved, Spend};
use rowmill_core::ports::{AskedKey, Group, TurnLine};
use rowmill_core::record::CallReport;
use rowmill_types::settings::{MAX_ROW_COST, MAX_ROW_TOKENS, ROW_TIMEOUT};
use rowmill_types::{ErrorKind, RowError, RowId};
use tokio::sync::Notify;

use crate::Crew;
use crate::account::Halt;
use crate::ask::NoAnswer;
use crate::cut::Cut;
use crate::keys::RowKey;
use crate::prepared::Prepared;
use crate::work::Shared;

/// A row that is being worked on.
pub(crate) struct RowContext<'a> {
    pub(crate) shared: &'a Shared,
    /// Its row worker.
    pub(crate) crew: Arc<Crew>,
    pub(crate) number: u64,
    /// The prefix of the keys of its requests.
    pub(crate) key: RowKey,
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
    mark: Option<(RowId, AskedKey)>,
    /// The row's budget, if it is limited.
    budget: Option<Mutex<Budget>>,
    /// Notified when a call with a reservation has ended.
    settled: Notify,
    /// The calls of dropped steps; boxed, because most rows have none.
    cut: Mutex<Option<Box<Cut>>>,
}

impl<'a> RowContext<'a> {
    pub(crate) fn new(shared: &'a Shared, crew: Arc<Crew>, prepared: &Prepared, spent: Spend) -> Self {
        let limits = shared.worker.row_budget;
        let id = crew.tools.is_some().then(|| prepared.id.clone());
        let failed_before = prepared.failed_before.then(|| shared.account.epoch());
        Self {
            key: RowKey::new(&shared.run, &prepared.id, failed_before),
            id,
            shared,
            crew,
            number: prepared.row.number(),
            mark: prepared.asked.map(|asked| (prepared.id.clone(), asked)),
            worked: AtomicU64::new(0),
            answered: AtomicBool::new(false),
            acted: AtomicBool::new(false),
            unknown: AtomicBool::new(false),
            budget: limits.any().then(|| Mutex::new(Budget::new(limits, spent))),
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
        Err(RowError::new(ErrorKind::Timeout, message).worded(self.shared.worker.vocabulary))
    }

    pub(crate) fn was_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Notes that something may have been billed without being reported.
    pub(crate) fn may_be_paid(&self, unknown: bool) {
        self.unknown.fetch_or(unknown, Ordering::Relaxed);
    }

    /// Notes that a tool is called that must not run twice.
    pub(crate) fn has_acted(&self) {
        self.acted.store(true, Ordering::Relaxed);
    }

    /// Whether nothing was paid for or done, and nothing may have been.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.was_answered() && !self.acted.load(Ordering::Relaxed) && !self.unknown.load(Ordering::Relaxed)
    }

    /// The error of a row whose run stopped before it was finished. If every call was answered, its outcome is not
    /// unknown.
    pub(crate) fn stopped(&self) -> RowError {
        let (kind, message) = if self.unknown.load(Ordering::Relaxed) {
            (ErrorKind::Interrupted, "the run stopped before the row's last answer arrived")
        } else {
            (
                ErrorKind::RunStopped,
                "the run stopped before this row was finished; all its calls were answered",
            )
        };
        RowError::new(kind, message)
    }

    /// Records what a dropped step leaves.
    pub(crate) fn cut(&self, takes_in: impl FnOnce(&mut Cut)) {
        takes_in(locked(&self.cut).get_or_insert_default());
    }

    /// The calls of dropped steps.
    pub(crate) fn take_cut(&self) -> Option<Box<Cut>> {
        locked(&self.cut).take()
    }

    /// Names the agent in reports of calls, if there are agents.
    pub(crate) fn name_agent(&self, member: usize, reports: &mut [CallReport]) {
        let name = self.member_name(member);
        if self.crew.cast.members().len() > 1 || !name.is_empty() {
            reports.iter_mut().for_each(|report| report.agent = Some(name.to_owned()));
        }
    }

    /// A row that gets no ticket is released as if it had never been sent, unless something was paid for it already, or
    /// may have been: that must be recorded.
    pub(crate) fn given_back(&self, halt: Option<Halt>) -> NoAnswer {
        if self.is_untouched() {
            return NoAnswer::Released(halt);
        }
        NoAnswer::Failed(self.stopped(), halt)
    }

    /// What the row may still spend, if calls in flight turn out to cost nothing.
    pub(crate) fn left(&self) -> BudgetLimits {
        self.budget.as_ref().map(|budget| locked(budget).left().whole).unwrap_or_default()
    }

    /// Reserves the worst case of a call in the row's budget. If other calls of the row may leave enough room for it,
    /// this waits for their end, so that the outcome does not depend on which call is faster.
    pub(crate) async fn set_aside(
        &self,
        worst: impl FnOnce() -> Spend,
    ) -> Result<Option<Share<'_>>, RowError> {
        match &self.budget {
            // Boxed, because most rows have no budget of their own and are moved with all that they might need.
            Some(budget) => Box::pin(self.reserve(budget, worst())).await.map(Some),
            None => Ok(None),
        }
    }

    async fn reserve<'s>(&'s self, budget: &'s Mutex<Budget>, worst: Spend) -> Result<Share<'s>, RowError> {
        loop {
            // Registered before the check, so that no notification is missed.
            let settled = self.settled.notified();
            let reserved = locked(budget).reserve(worst);
            match reserved {
                Reserved::Granted(reservation) => {
                    let settled = &self.settled;
                    return Ok(Share { budget, settled, reservation: Some(reservation) });
                }
                Reserved::Never => {
                    let error = beyond(&locked(budget), worst);
                    return Err(error.worded(self.shared.worker.vocabulary));
                }
                Reserved::Later => settled.await,
            }
        }
    }

    /// Records a step event of the row, if turns are kept. The ledger has it when this returns.
    pub(crate) async fn keep(&self, happening: &Happening) -> Result<(), Halt> {
        if self.mark.is_none() {
            return Ok(());
        }
        let mut line = Vec::with_capacity(512);
        happening.write(&mut line);
        self.append(line).await
    }

    /// Records a step event that is serialized already.
    pub(crate) async fn append(&self, line: Vec<u8>) -> Result<(), Halt> {
        let Some((id, asked)) = self.mark.clone() else { return Ok(()) };
        let line = self.shared.worker.redactor.redact_json_line(line);
        let turns = [TurnLine { row: self.number, id, asked, happening: line }];
        let appended = self.shared.account.append(Group { turns: &turns, ..Group::default() }).await;
        match appended.map(|appended| appended.trouble) {
            Ok(None) => Ok(()),
            Ok(Some(problem)) | Err(problem) => Err(Halt::Problem(problem)),
        }
    }
}

/// The worst case of a call that was sent. If the call is dropped, all of it counts.
pub(crate) struct Share<'s> {
    budget: &'s Mutex<Budget>,
    settled: &'s Notify,
    reservation: Option<Reservation>,
}

impl Share<'_> {
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

impl Drop for Share<'_> {
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
    RowError::new(ErrorKind::RowLimit, message)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
