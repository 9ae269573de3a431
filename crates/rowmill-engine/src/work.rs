//! The work on one row: prompt, calls, retries, repairs, and one report at the end.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use rowmill_core::judge::{Judgement, judge};
use rowmill_core::ports::{Event, Observer};
use rowmill_core::record::{CallReport, InputField, Record, RowReport};
use rowmill_types::{
    CallError, CallFailure, CallTiming, Completion, ErrorKind, Fault, Message, Request, Row, RowError, RowId,
};
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Stop, Worker};

/// What all rows of a run share.
pub(crate) struct Shared {
    pub(crate) run: String,
    pub(crate) worker: Worker,
    pub(crate) observer: std::sync::Arc<dyn Observer>,
    pub(crate) stop: Stop,
    pub(crate) began: Instant,
}

/// A row that has ended.
pub(crate) struct Ended {
    pub(crate) ordinal: u64,
    pub(crate) number: u64,
    pub(crate) id: RowId,
    pub(crate) row: Option<Row>,
    pub(crate) outcome: Result<String, RowError>,
    pub(crate) calls: Vec<CallReport>,
    pub(crate) start: Duration,
    pub(crate) end: Duration,
    /// The failure that ended it, where a call did.
    pub(crate) failure: Option<CallError>,
    /// Calls without an answer that may have been billed.
    pub(crate) unknown_calls: u64,
}

impl Ended {
    /// A row that ended before anything was asked.
    pub(crate) fn unasked(
        ordinal: u64,
        id: RowId,
        number: u64,
        error: RowError,
        row: Option<Row>,
        now: Duration,
    ) -> Self {
        Self {
            ordinal,
            number,
            id,
            row,
            outcome: Err(error),
            calls: Vec::new(),
            start: now,
            end: now,
            failure: None,
            unknown_calls: 0,
        }
    }

    pub(crate) fn report(&self, include_input: bool) -> RowReport<'_> {
        let input = match (&self.row, include_input) {
            (_, false) => InputField::Absent,
            (Some(row), true) => InputField::Row(row),
            (None, true) => InputField::Unreadable,
        };
        RowReport {
            id: &self.id,
            number: self.number,
            outcome: &self.outcome,
            input,
            start: self.start,
            end: self.end,
            calls: &self.calls,
        }
    }

    pub(crate) fn record(&self, include_input: bool) -> Record {
        Record::of(&self.report(include_input))
    }
}

/// Works on a row to its end. A panic on the way is that row's failure.
pub(crate) async fn work(shared: &Shared, ordinal: u64, id: RowId, row: Row) -> Ended {
    let start = shared.began.elapsed();
    let number = row.number();
    let mut turn = Turn { shared, number, calls: Vec::new(), failure: None, unknown_calls: 0, failed: 0 };
    let outcome = AssertUnwindSafe(turn.answer(&row)).catch_unwind().await.unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<&str>().map(ToString::to_string);
        let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(RowError::new(ErrorKind::Internal, format!("the worker panicked: {what}")))
    });
    let Turn { calls, failure, unknown_calls, .. } = turn;
    let attempts = u32::try_from(calls.len()).ok().filter(|&made| made > 0);
    let outcome = outcome.map_err(|error| RowError { attempts, ..error });
    Ended {
        ordinal,
        number,
        id,
        row: Some(row),
        outcome,
        calls,
        start,
        end: shared.began.elapsed(),
        failure,
        unknown_calls,
    }
}

struct Turn<'a> {
    shared: &'a Shared,
    number: u64,
    calls: Vec<CallReport>,
    failure: Option<CallError>,
    unknown_calls: u64,
    /// Calls that failed; the retries of a row are shared by all its turns.
    failed: u32,
}

impl Turn<'_> {
    async fn answer(&mut self, row: &Row) -> Result<String, RowError> {
        let worker = &self.shared.worker;
        let prompt = worker.template.render(row)?;
        let mut messages = vec![Message::user(prompt)];
        let mut repairs = 0;
        loop {
            let key = format!("{}-{}-{}", self.shared.run, self.number, repairs + 1);
            let mut request = Request { key, attempt: 1, messages };
            let completion = self.complete(&mut request).await?;
            match judge(&completion, worker.schema.as_ref(), repairs < worker.repairs) {
                Judgement::Result(result) => return Ok(result),
                Judgement::Failed(error) => return Err(error),
                Judgement::Repair(feedback) => {
                    messages = request.messages;
                    messages.push(Message::assistant(completion.text));
                    messages.push(Message::user(feedback));
                    repairs += 1;
                }
            }
        }
    }

    /// One turn with the model: calls until there is an answer or no try is left.
    async fn complete(&mut self, request: &mut Request) -> Result<Completion, RowError> {
        loop {
            let error = match self.call(request).await {
                Ok(completion) => return Ok(completion),
                Err(error) => error,
            };
            self.failed += 1;
            let fault = error.fault();
            let wait =
                self.shared.worker.retry.wait(self.failed, fault, jitter(&request.key, request.attempt));
            let again = match wait {
                Some(wait) => {
                    let number = self.number;
                    self.shared.observer.observe(&Event::Retrying { number, error: &error, wait });
                    self.pause(wait).await
                }
                None => false,
            };
            if !again {
                let failed = RowError {
                    status: error.status,
                    code: error.code.clone(),
                    ..RowError::new(error.failure.kind(), error.message.clone())
                };
                self.failure = Some(error);
                return Err(failed);
            }
            request.attempt += 1;
        }
    }

    async fn call(&mut self, request: &Request) -> Result<Completion, CallError> {
        let sent = Instant::now();
        let limit = self.shared.worker.timeout;
        let mut outcome = match tokio::time::timeout(limit, self.shared.worker.model.complete(request)).await
        {
            Ok(outcome) => outcome,
            Err(_) => {
                let message = format!("no complete answer within {} s", limit.as_secs_f64());
                Err(CallError::new(CallFailure::Timeout, message))
            }
        };
        self.calls.push(match &mut outcome {
            // What only the report needs is moved into it, not copied.
            Ok(completion) => CallReport {
                error: None,
                status: None,
                timing: completion.timing,
                usage: completion.usage,
                raw_usage: completion.raw_usage.take(),
                model: completion.model.take(),
                service_tier: completion.service_tier.take(),
            },
            Err(error) => CallReport {
                error: Some(error.failure.kind()),
                status: error.status,
                timing: CallTiming { first_token: None, response: sent.elapsed() },
                usage: None,
                raw_usage: None,
                model: None,
                service_tier: None,
            },
        });
        self.unknown_calls += u64::from(outcome.as_ref().is_err_and(|error| error.failure.maybe_billed()));
        outcome
    }

    /// Waits before a retry; a drain ends the wait, and then there is no retry.
    async fn pause(&self, wait: Duration) -> bool {
        tokio::select! {
            () = tokio::time::sleep(wait) => true,
            () = self.shared.stop.drained() => false,
        }
    }
}

/// A number from 0 to 1 that differs between rows and tries, so that rows that
/// failed together do not come back together.
fn jitter(key: &str, attempt: u32) -> f64 {
    let mixed = xxh3_64(key.as_bytes()).wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (xxh3_64(&mixed.to_le_bytes()) >> 11) as f64 / (1u64 << 53) as f64
}

/// Whether no row can succeed after this failure.
pub(crate) fn is_fatal(error: &CallError) -> bool {
    error.fault() == Fault::Fatal
}
