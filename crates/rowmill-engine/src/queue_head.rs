//! Rows before their first call: their slot, their prompt, and the ticket for sending.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rowmill_core::agent::RowState;
use rowmill_core::limits::BudgetLimits;
use rowmill_core::ports::{PromptMaker, PromptRendering};
use rowmill_types::Row;

use crate::RowWorker;
use crate::call_demand::CallDemand;
use crate::endpoint::CallTicket;
use crate::feed::{RowWork, TakenRow};
use crate::intake::prompt_panicked;
use crate::prepared::{EarlierCalls, EndedRow, NamedInputRow, PreparedRow};
use crate::publish::{QueuedContent, QueuedRecord};
use crate::replay::{question_key, replay_row};
use crate::row_work::{FirstCall, RunContext, WorkedRow, work_on_row};
use crate::run_driver::RunDriver;
use crate::stop_policy::StopCause;

/// A row that waits for a ticket.
pub(crate) struct QueueHead {
    prepared: PreparedRow,
    pub(crate) row_worker: Arc<RowWorker>,
    /// The model role and the model that it starts with.
    pub(crate) model_role: usize,
    pub(crate) endpoint: usize,
    pub(crate) demand: CallDemand,
}

impl QueueHead {
    fn new(shared: &RunContext, mut prepared: PreparedRow) -> Option<Self> {
        let row_worker = prepared.row_worker.take()?;
        prepared.question_key = shared.worker.checkpoint.then(|| question_key(&prepared.messages));
        let messages = &mut prepared.messages;
        let row_state = prepared
            .row_state
            .get_or_insert_with(|| Box::new(RowState::start(&row_worker.graph, std::mem::take(messages))));
        // A row that continues with a tool asks its model soon after.
        let (model_role, messages) = row_state.first_ready_call().unwrap_or_default();
        let endpoint = row_worker.first_endpoint(model_role);
        let row_left = row_left(shared, &prepared.earlier_calls);
        let demand = CallDemand::for_messages(row_worker.endpoint(model_role, endpoint)?, messages, row_left);
        Some(Self { prepared, row_worker, model_role, endpoint, demand })
    }

    pub(crate) fn start_row<'a>(
        self,
        shared: &'a RunContext,
        ticket: CallTicket<'a>,
    ) -> impl Future<Output = WorkedRow> + use<'a> {
        let Self { prepared, row_worker, model_role, endpoint, .. } = self;
        work_on_row(shared, row_worker, prepared, FirstCall { model_role, endpoint, ticket })
    }
}

impl RunDriver {
    /// The next row that can be sent at once, with its ticket.
    pub(crate) fn next_call<'a>(
        &mut self,
        shared: &'a RunContext,
        in_flight: usize,
    ) -> Option<(QueueHead, CallTicket<'a>)> {
        if self.stop_if_hopeless() || !self.has_room(in_flight) {
            return None;
        }
        if self.head.is_none() {
            self.head = self.next_head(shared, in_flight);
        }
        let head = self.head.as_ref()?;
        match CallTicket::try_acquire(
            &shared.account,
            head.row_worker.endpoint(head.model_role, head.endpoint)?,
            head.demand,
        )? {
            Ok(ticket) => {
                let head = self.head.take()?;
                self.note_sent(&head);
                Some((head, ticket))
            }
            Err(halt) => {
                self.stop_for_halt(halt, shared);
                None
            }
        }
    }

    /// Notes that a row is about to be sent.
    pub(crate) fn note_sent(&mut self, head: &QueueHead) {
        self.uncommitted.taken.push(head.prepared.named());
        self.in_flight.insert(head.prepared.ordinal);
    }

    /// Whether the remaining rows need not be sent because all before them failed; the run then ends.
    pub(crate) fn stop_if_hopeless(&mut self) -> bool {
        if self.is_closed || (self.head.is_none() && self.intake.is_empty()) {
            return false;
        }
        let Some(problem) = self.policy.same_failure() else { return false };
        self.stop_early(StopCause::Problem(problem));
        true
    }

    fn next_head(&mut self, shared: &RunContext, in_flight: usize) -> Option<QueueHead> {
        loop {
            if let Some(prepared) = self.intake.next_ready() {
                match self.go_on(prepared, shared) {
                    Some(prepared) => return QueueHead::new(shared, prepared),
                    None => continue,
                }
            }
            if self.stop_if_hopeless() {
                return None;
            }
            if let Some(prepared) = self.intake.prompted.pop_front() {
                let Some(share) = self.memory.try_reserve(prepared.bytes()) else {
                    self.intake.prompted.push_front(prepared);
                    return None;
                };
                let considered = self.intake.accept(PreparedRow { _memory: share, ..prepared });
                match considered.and_then(|prepared| self.go_on(prepared, shared)) {
                    Some(prepared) => return QueueHead::new(shared, prepared),
                    None => continue,
                }
            }
            if !self.intake.wants_prompts() || !self.has_room(in_flight + self.intake.held_rows()) {
                return None;
            }
            let taken = self.intake.queue.pop_front()?;
            self.take(taken, shared);
        }
    }

    /// Restores a row to its state at a crash; ends the row if it cannot continue from there.
    fn go_on(&mut self, mut prepared: PreparedRow, shared: &RunContext) -> Option<PreparedRow> {
        let Some(row_worker) =
            prepared.row_worker.clone().filter(|_| !prepared.earlier_events.step_events.is_empty())
        else {
            return Some(prepared);
        };
        let before = replay_row(&row_worker.graph, &mut prepared);
        let error = match before {
            Ok(()) => return Some(prepared),
            Err(error) => error,
        };
        let PreparedRow { ordinal, id, row, earlier_calls: before, row_state, .. } = prepared;
        let unasked =
            EndedRow::without_call(NamedInputRow::of(ordinal, id, row), Err(error), self.began.elapsed());
        let traced = row_state.filter(|_| row_worker.graph.keeps_transcripts());
        let trace = traced.map(|row_state| Box::new(row_state.into_transcript()));
        let calls_before = before.calls.len();
        self.handle_row_end(
            EndedRow { calls: before.calls, calls_before, tools: before.tools, trace, ..unasked },
            shared,
        );
        None
    }

    /// Routes the next row to another model, because the one that it waits for is down.
    pub(crate) fn reroute_head(&mut self, shared: &RunContext) {
        let Some(head) = &mut self.head else { return };
        let endpoint = head.row_worker.first_endpoint(head.model_role);
        if let Some(found) = head.row_worker.endpoint(head.model_role, endpoint) {
            let call = head.prepared.row_state.as_ref().and_then(|row_state| row_state.first_ready_call());
            let row_left = row_left(shared, &head.prepared.earlier_calls);
            (head.endpoint, head.demand) =
                (endpoint, CallDemand::for_messages(found, call.unwrap_or_default().1, row_left));
        }
    }

    /// Assigns a slot to a row and has its prompt rendered; rows that need no call end here.
    fn take(&mut self, taken: TakenRow, shared: &RunContext) {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let TakenRow { number, id, work } = taken;
        let (error, row) = match work {
            RowWork::Kept(record) => {
                self.uncommitted.kept.push(QueuedRecord { ordinal, content: QueuedContent::Kept(record) });
                return;
            }
            RowWork::MapAgain(record, outcome) => {
                self.uncommitted.kept.push(QueuedRecord { ordinal, content: QueuedContent::Kept(record) });
                let unasked = EndedRow::without_call(
                    NamedInputRow { ordinal, id, number, row: None },
                    outcome,
                    self.began.elapsed(),
                );
                self.handle_row_end(EndedRow { again: true, ..unasked }, shared);
                return;
            }
            RowWork::Fail(error, row) => (error, row),
            RowWork::Call(row, recalled) => {
                let row_worker = shared.worker.assignment.shared_worker().cloned();
                let prompting = prompt(&*shared.worker.prompts, &row);
                let prepared = PreparedRow { row_worker, ..PreparedRow::new(ordinal, id, row, recalled) };
                match prompting {
                    PromptRendering::Done(made) => {
                        let failed = self.intake.receive_prompt(prepared, made, self.began.elapsed());
                        failed.into_iter().for_each(|ended| self.handle_row_end(ended, shared));
                    }
                    PromptRendering::Running(making) => self.intake.await_prompt(prepared, making),
                }
                return;
            }
        };
        self.handle_row_end(
            EndedRow::without_call(
                NamedInputRow { ordinal, id, number, row },
                Err(error),
                self.began.elapsed(),
            ),
            shared,
        );
    }
}

/// The rest of a row's budget before it starts or continues.
fn row_left(shared: &RunContext, before: &EarlierCalls) -> BudgetLimits {
    let limits = shared.worker.row_budget;
    if limits.is_limited() { limits.minus(before.spent()) } else { limits }
}

/// The prompt of a row. A panic counts as the row's failure.
fn prompt(prompts: &dyn PromptMaker, row: &Row) -> PromptRendering {
    catch_unwind(AssertUnwindSafe(|| prompts.make_prompt(row)))
        .unwrap_or_else(|panic| PromptRendering::Done(Err(prompt_panicked(&*panic))))
}
