//! Rows before their first call: their slot, their prompt, and the ticket for sending.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rowmill_core::agent::Course;
use rowmill_core::limits::BudgetLimits;
use rowmill_core::ports::{Prompting, Prompts};
use rowmill_types::Row;

use crate::Crew;
use crate::asking::Asking;
use crate::drive::Driver;
use crate::feed::{Taken, Work};
use crate::intake::prompt_panicked;
use crate::lane::Ticket;
use crate::policy::StopCause;
use crate::prepared::{Before, Ended, Prepared};
use crate::publish::{Content, Parcel};
use crate::replay::{asked, replay};
use crate::work::{Done, FirstCall, Shared, work};

/// A row that waits for a ticket.
pub(crate) struct Head {
    prepared: Prepared,
    pub(crate) crew: Arc<Crew>,
    /// The model role and the model that it starts with.
    pub(crate) voice: usize,
    pub(crate) lane: usize,
    pub(crate) asking: Asking,
}

impl Head {
    fn new(shared: &Shared, mut prepared: Prepared) -> Option<Self> {
        let crew = prepared.crew.take()?;
        prepared.asked = shared.worker.checkpoint.then(|| asked(&prepared.messages));
        let messages = &mut prepared.messages;
        let course = prepared
            .course
            .get_or_insert_with(|| Box::new(Course::start(&crew.cast, std::mem::take(messages))));
        // A row that continues with a tool asks its model soon after.
        let (voice, messages) = course.first_call().unwrap_or_default();
        let lane = crew.route(voice);
        let row_left = row_left(shared, &prepared.before);
        let asking = Asking::of(crew.lane(voice, lane)?, messages, row_left);
        Some(Self { prepared, crew, voice, lane, asking })
    }

    pub(crate) fn begin<'a>(
        self,
        shared: &'a Shared,
        ticket: Ticket<'a>,
    ) -> impl Future<Output = Done> + use<'a> {
        let Self { prepared, crew, voice, lane, .. } = self;
        work(shared, crew, prepared, FirstCall { voice, lane, ticket })
    }
}

impl Driver {
    /// The next row that can be sent at once, with its ticket.
    pub(crate) fn next_call<'a>(
        &mut self,
        shared: &'a Shared,
        in_flight: usize,
    ) -> Option<(Head, Ticket<'a>)> {
        if self.end_if_hopeless() || !self.has_room(in_flight) {
            return None;
        }
        if self.head.is_none() {
            self.head = self.next_head(shared, in_flight);
        }
        let head = self.head.as_ref()?;
        match Ticket::try_take(&shared.account, head.crew.lane(head.voice, head.lane)?, head.asking)? {
            Ok(ticket) => {
                let head = self.head.take()?;
                self.sends(&head);
                Some((head, ticket))
            }
            Err(halt) => {
                self.halt(halt, shared);
                None
            }
        }
    }

    /// Notes that a row is about to be sent.
    pub(crate) fn sends(&mut self, head: &Head) {
        self.now.taken.push(head.prepared.named());
        self.in_flight.insert(head.prepared.ordinal);
    }

    /// Whether the remaining rows need not be sent because all before them failed; the run then ends.
    pub(crate) fn end_if_hopeless(&mut self) -> bool {
        if self.is_closed || (self.head.is_none() && self.intake.is_empty()) {
            return false;
        }
        let Some(problem) = self.policy.same_failure() else { return false };
        self.end_early(StopCause::Problem(problem));
        true
    }

    fn next_head(&mut self, shared: &Shared, in_flight: usize) -> Option<Head> {
        loop {
            if let Some(prepared) = self.intake.next_ready() {
                match self.go_on(prepared, shared) {
                    Some(prepared) => return Head::new(shared, prepared),
                    None => continue,
                }
            }
            if self.end_if_hopeless() {
                return None;
            }
            if let Some(prepared) = self.intake.prompted.pop_front() {
                let Some(share) = self.memory.take(prepared.bytes()) else {
                    self.intake.prompted.push_front(prepared);
                    return None;
                };
                let considered = self.intake.consider(Prepared { _memory: share, ..prepared });
                match considered.and_then(|prepared| self.go_on(prepared, shared)) {
                    Some(prepared) => return Head::new(shared, prepared),
                    None => continue,
                }
            }
            if !self.intake.wants_prompts() || !self.has_room(in_flight + self.intake.held()) {
                return None;
            }
            let taken = self.intake.queue.pop_front()?;
            self.take(taken, shared);
        }
    }

    /// Restores a row to its state at a crash; ends the row if it cannot continue from there.
    fn go_on(&mut self, mut prepared: Prepared, shared: &Shared) -> Option<Prepared> {
        let Some(crew) = prepared.crew.clone().filter(|_| !prepared.recalled.happenings.is_empty()) else {
            return Some(prepared);
        };
        let before = replay(&crew.cast, &mut prepared);
        let error = match before {
            Ok(()) => return Some(prepared),
            Err(error) => error,
        };
        let Prepared { ordinal, id, row, before, course, .. } = prepared;
        let unasked = Ended::unasked(ordinal, id, row.number(), Some(row), Err(error), self.began.elapsed());
        let told = course.filter(|_| crew.cast.keeps_transcripts());
        let trace = told.map(|course| Box::new(course.into_transcript()));
        let calls_before = before.calls.len();
        self.heed(Ended { calls: before.calls, calls_before, tools: before.tools, trace, ..unasked }, shared);
        None
    }

    /// Routes the next row to another model, because the one that it waits for is down.
    pub(crate) fn route_head(&mut self, shared: &Shared) {
        let Some(head) = &mut self.head else { return };
        let lane = head.crew.route(head.voice);
        if let Some(found) = head.crew.lane(head.voice, lane) {
            let call = head.prepared.course.as_ref().and_then(|course| course.first_call());
            let row_left = row_left(shared, &head.prepared.before);
            (head.lane, head.asking) = (lane, Asking::of(found, call.unwrap_or_default().1, row_left));
        }
    }

    /// Assigns a slot to a row and has its prompt rendered; rows that need no call end here.
    fn take(&mut self, taken: Taken, shared: &Shared) {
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let Taken { number, id, work } = taken;
        let (error, row) = match work {
            Work::Kept(record) => {
                self.now.kept.push(Parcel { ordinal, content: Content::Kept(record) });
                return;
            }
            Work::Again(record, outcome) => {
                self.now.kept.push(Parcel { ordinal, content: Content::Kept(record) });
                let unasked = Ended::unasked(ordinal, id, number, None, outcome, self.began.elapsed());
                self.heed(Ended { again: true, ..unasked }, shared);
                return;
            }
            Work::Fail(error, row) => (error, row),
            Work::Call(row, recalled) => {
                let crew = shared.worker.casting.same().cloned();
                let prompting = prompt(&*shared.worker.prompts, &row);
                let prepared = Prepared { crew, ..Prepared::new(ordinal, id, row, recalled) };
                match prompting {
                    Prompting::Done(made) => {
                        let failed = self.intake.receive_prompt(prepared, made, self.began.elapsed());
                        failed.into_iter().for_each(|ended| self.heed(ended, shared));
                    }
                    Prompting::Running(making) => self.intake.await_prompt(prepared, making),
                }
                return;
            }
        };
        self.heed(Ended::unasked(ordinal, id, number, row, Err(error), self.began.elapsed()), shared);
    }
}

/// The rest of a row's budget before it starts or continues.
fn row_left(shared: &Shared, before: &Before) -> BudgetLimits {
    let limits = shared.worker.row_budget;
    if limits.any() { limits.without(before.spent()) } else { limits }
}

/// The prompt of a row. A panic counts as the row's failure.
fn prompt(prompts: &dyn Prompts, row: &Row) -> Prompting {
    catch_unwind(AssertUnwindSafe(|| prompts.prompt(row)))
        .unwrap_or_else(|panic| Prompting::Done(Err(prompt_panicked(&*panic))))
}
