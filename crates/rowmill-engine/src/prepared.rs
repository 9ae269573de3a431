//! A row that is ready to be sent, and a row that has ended.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::agent::{RowState, RowTranscript, StepEvent};
use rowmill_core::answer_consequence::{AnswerConsequence, judge_answer};
use rowmill_core::limits::Spend;
use rowmill_core::ports::{
    AnswerKey, AnswerMapper, AnsweredRow, LedgerRecordId, NamedRow, ResultVerdict, RunEpoch, StoredAnswer,
};
use rowmill_core::record::{
    CallReport, EnvelopeInput, LowRatingReport, ReusableAnswer, ReusableAnswerEncoding, ReusedAnswerSource,
    RowRecord, RowReport, RowTraceData, ToolCallReport, total_cost, total_usage,
};
use rowmill_core::redact::Redactor;
use rowmill_core::validate::ResultSchema;
use rowmill_types::{CallError, Completion, DiagnosticText, Message, Row, RowError, RowErrorKind, RowId};

use crate::memory::MemoryReservation;
use crate::row_work::panic_message;
use crate::{RowExecutionSetup, RowWorker};

/// A row with its prompt, once that is ready.
#[derive(Debug)]
pub(crate) struct PreparedRow {
    pub(crate) ordinal: u64,
    pub(crate) id: RowId,
    pub(crate) row: Row,
    /// Its row worker, once it is known.
    pub(crate) row_worker: Option<Arc<RowWorker>>,
    pub(crate) messages: Vec<Message>,
    /// The key of its request, if answers are reused.
    pub(crate) key: Option<AnswerKey>,
    /// Its step events from before a crash.
    pub(crate) earlier_events: EarlierEvents,
    /// Set if it failed in an earlier part of the run: the part in which it was started again.
    pub(crate) failed_before: Option<RunEpoch>,
    /// Its state, once it is about to be sent.
    pub(crate) row_state: Option<Box<RowState>>,
    /// The calls made for it before a crash.
    pub(crate) earlier_calls: EarlierCalls,
    /// The key of its request, if turns are kept.
    pub(crate) question_key: Option<AnswerKey>,
    /// The memory that it holds.
    pub(crate) _memory: MemoryReservation,
}

/// The events of a row from before a crash.
#[derive(Debug, Default)]
pub(crate) struct EarlierEvents {
    pub(crate) step_events: Vec<StepEvent>,
    /// The key of the row's request at that time.
    pub(crate) question_key: Option<AnswerKey>,
    /// How many of them are included in a record, which states that the row was interrupted.
    pub(crate) reported: usize,
    /// Set if the row failed in an earlier part of the run: the part in which it was started again.
    pub(crate) failed_before: Option<RunEpoch>,
    /// Whether it was parked: no earlier part of the run has counted its calls.
    pub(crate) was_parked: bool,
}

/// The calls made for a row before a crash.
#[derive(Debug, Default)]
pub(crate) struct EarlierCalls {
    /// The calls that no record includes yet.
    pub(crate) calls: Vec<CallReport>,
    pub(crate) tools: Vec<ToolCallReport>,
    /// The cost of the calls that a record includes.
    pub(crate) reported: Spend,
    /// Whether no earlier part of the run has counted them.
    pub(crate) uncounted: bool,
}

impl EarlierCalls {
    pub(crate) fn spent(&self) -> Spend {
        self.reported.plus(spent_on_calls(&self.calls))
    }
}

/// The usage and cost of calls.
pub(crate) fn spent_on_calls(calls: &[CallReport]) -> Spend {
    let usage = total_usage(calls);
    Spend { cost: total_cost(calls), tokens: usage.tokens() }
}

impl PreparedRow {
    /// The row as the ledger identifies it.
    pub(crate) fn named(&self) -> NamedRow {
        NamedRow { number: self.row.number(), id: self.id.clone() }
    }

    /// A row whose prompt is not known yet.
    pub(crate) fn new(ordinal: u64, id: RowId, row: Row, recalled: EarlierEvents) -> Self {
        Self {
            ordinal,
            id,
            row,
            row_worker: None,
            messages: Vec::new(),
            key: None,
            failed_before: recalled.failed_before,
            earlier_events: recalled,
            row_state: None,
            earlier_calls: EarlierCalls::default(),
            question_key: None,
            _memory: MemoryReservation::default(),
        }
    }

    /// The approximate memory of the row: its text, its prompt, and its requests.
    pub(crate) fn bytes(&self) -> usize {
        let prompt: usize = self.messages.iter().map(|message| message.text.len()).sum();
        self.row.json_text().len() + 2 * prompt
    }

    /// Ends the row with a paid answer; returns it if the answer does not satisfy the schema.
    pub(crate) fn end_with_stored_answer(
        self,
        answer: &StoredAnswer,
        reused: ReusedAnswerSource,
        schema: Option<&ResultSchema>,
        now: Duration,
    ) -> Result<EndedRow, Box<Self>> {
        let completion = Completion::from_text(answer.text.clone());
        let result = match judge_answer(&completion, schema, false) {
            // A string is always JSON, so the fallback is never used.
            AnswerConsequence::Text => serde_json::to_string(&completion.text).unwrap_or_default(),
            AnswerConsequence::Json(result) => result,
            AnswerConsequence::Repair(_) | AnswerConsequence::Failed(_) => return Err(Box::new(self)),
        };
        let unasked =
            EndedRow::without_call(NamedInputRow::of(self.ordinal, self.id, self.row), Ok(result), now);
        Ok(EndedRow { reused: Some(reused), ..unasked })
    }
}

/// A row that has ended.
#[derive(Debug)]
pub(crate) struct EndedRow {
    pub(crate) ordinal: u64,
    pub(crate) number: u64,
    pub(crate) id: RowId,
    pub(crate) row: Option<Row>,
    pub(crate) outcome: Result<String, RowError>,
    pub(crate) calls: Vec<CallReport>,
    /// How many of them an earlier part of the run made.
    pub(crate) calls_before: usize,
    /// The tools that were called.
    pub(crate) tools: Vec<ToolCallReport>,
    /// Answers that are rated lower than requested.
    pub(crate) below_min_rating: Vec<LowRatingReport>,
    /// Answers that violated the schema and were requested again.
    pub(crate) repairs: u64,
    pub(crate) start: Duration,
    pub(crate) end: Duration,
    /// The failure that ended it, if a call failed.
    pub(crate) failure: Option<CallError>,
    /// Calls without an answer that may have been billed.
    pub(crate) unknown_calls: u64,
    /// What the provider's cache saved on its calls.
    pub(crate) saved: rowmill_types::Money,
    /// The key of its request, and the answer that other rows may reuse.
    pub(crate) key: Option<AnswerKey>,
    pub(crate) kept: Option<StoredAnswer>,
    pub(crate) reused: Option<ReusedAnswerSource>,
    /// The transcript, if traces are kept and anything happened.
    pub(crate) trace: Option<Box<RowTranscript>>,
    /// Whether its answer counts as a result, once that is known.
    pub(crate) verdict: ResultVerdict,
    /// The error, if mapping the answer failed.
    pub(crate) unfinished: Option<Box<Result<String, RowError>>>,
    /// Whether its record is in the ledger from an earlier run.
    pub(crate) again: bool,
    /// Its record, if the ledger has it already.
    pub(crate) kept_first: Option<Box<(RowRecord, LedgerRecordId)>>,
}

/// A row of the input with its id.
pub(crate) struct NamedInputRow {
    /// Its place among the rows that were taken.
    pub(crate) ordinal: u64,
    pub(crate) id: RowId,
    /// Its number in the input.
    pub(crate) number: u64,
    /// The row, unless it could not be read.
    pub(crate) row: Option<Row>,
}

impl NamedInputRow {
    /// A row that could be read.
    pub(crate) fn of(ordinal: u64, id: RowId, row: Row) -> Self {
        Self { ordinal, id, number: row.number(), row: Some(row) }
    }
}

impl EndedRow {
    /// A row that ended without a call.
    pub(crate) fn without_call(
        named: NamedInputRow,
        outcome: Result<String, RowError>,
        now: Duration,
    ) -> Self {
        let NamedInputRow { ordinal, id, number, row } = named;
        Self {
            ordinal,
            number,
            id,
            row,
            outcome,
            calls: Vec::new(),
            calls_before: 0,
            tools: Vec::new(),
            below_min_rating: Vec::new(),
            repairs: 0,
            start: now,
            end: now,
            failure: None,
            unknown_calls: 0,
            saved: rowmill_types::Money::ZERO,
            key: None,
            kept: None,
            reused: None,
            trace: None,
            verdict: ResultVerdict::Result,
            unfinished: None,
            again: false,
            kept_first: None,
        }
    }

    /// Prepares the outcome for recording: settings get the names that the user knows, and secrets are removed.
    pub(crate) fn redact_outcome(&mut self, worker: &RowExecutionSetup) {
        if let Err(error) = &mut self.outcome {
            error.message = std::mem::take(&mut error.message).with_vocabulary(worker.vocabulary);
        }
        self.redact(&worker.redactor);
    }

    /// Removes secrets from the outcome.
    fn redact(&mut self, redactor: &Redactor) {
        let clean = |text: &mut String| {
            if let Cow::Owned(hidden) = redactor.redact(text) {
                *text = hidden;
            }
        };
        match &mut self.outcome {
            Ok(result) => {
                if let Cow::Owned(hidden) = redactor.redact_json(result) {
                    *result = hidden;
                }
            }
            Err(error) => {
                if let Cow::Owned(hidden) = redactor.redact(&error.message) {
                    error.message = DiagnosticText::from_plain(hidden);
                }
                error.raw_text.iter_mut().for_each(clean);
            }
        }
        self.kept.iter_mut().filter_map(|kept| kept.model.as_mut()).for_each(clean);
        self.calls.iter_mut().for_each(|call| call.redact(redactor));
    }

    /// Maps the answer, if there is one. A panic counts as the row's failure.
    pub(crate) fn map_answer(&mut self, finish: &dyn AnswerMapper) {
        let Ok(result) = &self.outcome else { return };
        let finishing = AnsweredRow { row: self.number, result, calls: &self.calls };
        let finished = catch_unwind(AssertUnwindSafe(|| finish.map_answer(finishing)));
        let finished = finished.unwrap_or_else(|panic| {
            Err(RowError::new(
                RowErrorKind::Output,
                format!("the output panicked: {}", panic_message(&*panic)),
            ))
        });
        match finished {
            Ok(verdict) => self.verdict = verdict,
            Err(error) => self.unfinished = Some(Box::new(Err(error))),
        }
    }

    /// The calls that this part of the run made.
    pub(crate) fn own_calls(&self) -> &[CallReport] {
        self.calls.get(self.calls_before..).unwrap_or_default()
    }

    /// The outcome for everything but the ledger, which keeps the answer.
    pub(crate) fn result(&self) -> &Result<String, RowError> {
        self.unfinished.as_deref().unwrap_or(&self.outcome)
    }

    pub(crate) fn report<'a>(&'a self, worker: &'a RowExecutionSetup) -> RowReport<'a> {
        let input = match (&self.row, worker.include_input) {
            (_, false) => EnvelopeInput::Absent,
            (Some(row), true) => EnvelopeInput::Row(row),
            (None, true) => EnvelopeInput::Unreadable,
        };
        RowReport {
            id: &self.id,
            number: self.number,
            outcome: &self.outcome,
            input,
            start: self.start,
            end: self.end,
            calls: &self.calls,
            tools: &self.tools,
            below_min_rating: &self.below_min_rating,
            reused: self.reused,
            reusable: self.reusable(worker),
            trace: worker
                .traces
                .as_deref()
                .map(|settings| RowTraceData { transcript: self.trace.as_deref(), settings }),
        }
    }

    /// The answer for the cache, if it may be reused for the same request.
    fn reusable(&self, worker: &RowExecutionSetup) -> Option<ReusableAnswer> {
        let key = self.key.filter(|_| self.kept.is_some())?;
        let has_schema =
            worker.assignment.shared_worker().is_some_and(|row_worker| row_worker.graph.schema().is_some());
        let form = if has_schema { ReusableAnswerEncoding::Json } else { ReusableAnswerEncoding::Text };
        Some(ReusableAnswer { key, form })
    }

    pub(crate) fn record(&self, worker: &RowExecutionSetup) -> RowRecord {
        RowRecord::from_report(&self.report(worker))
    }
}
