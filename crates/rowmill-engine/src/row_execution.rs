//! Executes the steps of a row, as many at once as its state allows.

use std::time::Duration;

use rowmill_core::agent::{
    AgentGraph, LowRating, ModelAnswer, RowState, RowStep, StepEvent, ToolResult, TurnDetails,
};
use rowmill_core::ports::{ResultVerdict, StoredAnswer};
use rowmill_core::record::{CallReport, LowRatingReport, ToolCallReport, total_usage};
use rowmill_types::{CallError, Completion, Message, Money, RowError, RowErrorKind};

use crate::dropped_steps::DroppedToolCall;
use crate::model_turn::{ModelCallStep, ModelTurnEnd, NoModelAnswer, is_fatal, run_model_turn};
use crate::prepared::{EarlierCalls, EndedRow, PreparedRow};
use crate::row_context::RowContext;
use crate::row_work::FirstCall;
use crate::run_account::RunHalt;
use crate::running_steps::{RunningSteps, StepKind};
use crate::tool_call::{ToolCallEnd, ToolCallStep, ToolCallStop};

enum StepEnd {
    Model(Box<ModelTurnEnd>),
    Tool { node: usize, index: usize, acted: Box<ToolCallEnd> },
    Time { node: usize, limit: Duration },
}

/// A step that can be taken.
enum ReadyStep<'r> {
    Model(ModelCallStep<'r>),
    Tool(ToolCallStep),
    Watch { node: usize, limit: Duration },
}

impl<'r> ReadyStep<'r> {
    /// The node and the kind of the step.
    fn place(&self) -> (usize, StepKind) {
        match self {
            Self::Model(step) => (step.node, StepKind::Model),
            Self::Tool(step) => (step.node, StepKind::Tool),
            Self::Watch { node, .. } => (*node, StepKind::Watch),
        }
    }

    /// Carries it out.
    async fn arrive(self, context: &'r RowContext<'r>) -> StepEnd {
        match self {
            Self::Model(step) => StepEnd::Model(Box::new(run_model_turn(context, step).await)),
            Self::Tool(mut step) => {
                let acted = Box::new(context.run_tool_call(&mut step).await);
                StepEnd::Tool { node: step.node, index: step.index, acted }
            }
            Self::Watch { node, limit } => {
                tokio::time::sleep(limit).await;
                StepEnd::Time { node, limit }
            }
        }
    }
}

/// The execution of a row.
pub(crate) struct RowExecution<'r> {
    context: &'r RowContext<'r>,
    row_state: RowState,
    first: Option<FirstCall<'r>>,
    calls: Vec<CallReport>,
    /// The number of calls made before a crash.
    calls_before: usize,
    tools: Vec<ToolCallReport>,
    failure: Option<CallError>,
    unknown_calls: u64,
    saved: Money,
    /// Model calls and tool calls that are under way.
    demand: u64,
    acting: u64,
    /// Whether a model other than the first of a model role has answered.
    stood_in: bool,
    /// For each model role, the model it asked last, if it was not the first.
    endpoints: Vec<(usize, usize)>,
    halt: Option<RunHalt>,
    /// Whether the row is to end once the steps under way have ended.
    ends: bool,
    /// Why, if it must not be released.
    cause: Option<RowError>,
    /// What it waits for, if answers arrive by another route.
    waits_for: Vec<String>,
}

impl<'r> RowExecution<'r> {
    pub(crate) fn new(
        context: &'r RowContext<'r>,
        row_state: RowState,
        first: FirstCall<'r>,
        before: EarlierCalls,
    ) -> Self {
        Self {
            context,
            row_state,
            first: Some(first),
            calls_before: if before.uncounted { 0 } else { before.calls.len() },
            calls: before.calls,
            tools: before.tools,
            failure: None,
            unknown_calls: 0,
            saved: Money::ZERO,
            demand: 0,
            acting: 0,
            stood_in: false,
            endpoints: Vec::new(),
            halt: None,
            ends: false,
            cause: None,
            waits_for: Vec::new(),
        }
    }

    /// Executes steps until the row has ended.
    pub(crate) async fn run(&mut self) {
        let mut rows_in_flight = RunningSteps::new();
        loop {
            while let Some(step) = self.next_step() {
                let is_alone = rows_in_flight.is_empty() && !self.row_state.has_ready_steps();
                match self.ready(step) {
                    ready if !is_alone => {
                        let (node, kind) = ready.place();
                        rows_in_flight.push(node, kind, ready.arrive(self.context));
                    }
                    // Most rows have one step at a time, which needs no allocation of its own.
                    ReadyStep::Model(step) => {
                        let asked = run_model_turn(self.context, step).await;
                        self.handle_model_end(asked).await;
                    }
                    ready => {
                        let arrived = Box::pin(ready.arrive(self.context)).await;
                        self.handle_step_end(arrived).await;
                    }
                }
            }
            if self.row_state.is_finished() {
                // Nobody waits for the steps that are still under way.
                return;
            }
            if self.ends && self.demand + self.acting == 0 {
                return self.end_by_cause();
            }
            let Some(arrived) = rows_in_flight.next().await else { return };
            let is_time = matches!(arrived, StepEnd::Time { .. });
            self.handle_step_end(arrived).await;
            if is_time {
                // A dropped step must not hold a slot that others wait for.
                let (asked, acted) =
                    rows_in_flight.drop_steps_where(|node| self.row_state.node_has_ended(node));
                self.demand -= asked;
                self.acting -= acted;
            }
        }
    }

    fn next_step(&mut self) -> Option<RowStep> {
        // An aborted run waits for checks of answers, but not for anything that follows from them.
        if self.ends || self.context.shared.stop.is_aborting() { None } else { self.row_state.next_step() }
    }

    /// Prepares a step for execution.
    fn ready(&mut self, step: RowStep) -> ReadyStep<'r> {
        match step {
            RowStep::CallModel { node, model_role, messages } => {
                ReadyStep::Model(self.model_step(node, model_role, messages))
            }
            RowStep::CallTool { node, index, tool, call } => {
                let model_role = self.row_state.node_model_role(node).unwrap_or_default();
                let agent_index = agent_of_step(self.context, model_role);
                let (turn, of_node) = (self.row_state.turn_count(), self.row_state.node_turn_count(node));
                self.acting += 1;
                let waited = Duration::ZERO;
                ReadyStep::Tool(ToolCallStep {
                    node,
                    index,
                    tool,
                    call,
                    turn,
                    turn_of_node: of_node,
                    agent_index,
                    model_role,
                    waited,
                })
            }
            RowStep::StartTimer { node, limit } => ReadyStep::Watch { node, limit },
        }
    }

    fn model_step(&mut self, node: usize, model_role: usize, messages: Vec<Message>) -> ModelCallStep<'r> {
        self.demand += 1;
        let before =
            self.endpoints.iter().find(|(known, _)| *known == model_role).map(|(_, endpoint)| *endpoint);
        let (endpoint, ticket) = match self.first.take() {
            Some(first) if first.model_role == model_role => (first.endpoint, Some(first.ticket)),
            _ => (before.unwrap_or_else(|| self.context.row_worker.first_endpoint(model_role)), None),
        };
        let agent_index = agent_of_step(self.context, model_role);
        ModelCallStep {
            node,
            model_role,
            agent_index,
            endpoint,
            ticket,
            turn: self.row_state.turn_count(),
            purpose: self.row_state.purpose_of(node),
            messages,
        }
    }

    async fn handle_step_end(&mut self, arrived: StepEnd) {
        match arrived {
            StepEnd::Model(asked) => self.handle_model_end(*asked).await,
            StepEnd::Tool { node, index, acted } => self.handle_tool_end(node, index, *acted).await,
            StepEnd::Time { node, limit } => {
                if !self.row_state.node_has_ended(node) {
                    let line = self.line(&StepEvent::NodeTimedOut { node, limit });
                    self.row_state.handle_node_timeout(&self.context.row_worker.graph, node, limit);
                    self.keep(line).await;
                }
            }
        }
    }

    async fn handle_model_end(&mut self, mut asked: ModelTurnEnd) {
        let context = self.context;
        let graph = &context.row_worker.graph;
        self.demand -= 1;
        self.count(&mut asked);
        let ModelTurnEnd { node, messages, prompt, outcome, calls, .. } = &mut asked;
        let (node, messages, prompt) = (*node, std::mem::take(messages), prompt.take());
        let reports = if context.shared.worker.checkpoint { calls.reports.clone() } else { Vec::new() };
        if self.calls.is_empty() {
            self.calls = std::mem::take(&mut calls.reports);
        } else {
            self.calls.append(&mut calls.reports);
        }
        let outcome = std::mem::replace(outcome, Err(NoModelAnswer::Released(None)));
        match outcome {
            Ok(completion) => {
                let note = graph.keeps_transcripts().then(|| self.turn_details(&asked, &completion));
                let answered = StepEvent::ModelAnswered { node, prompt, completion, note, calls: reports };
                let line = self.line(&answered);
                let StepEvent::ModelAnswered { completion, note, .. } = answered else { return };
                self.row_state.handle_answer(graph, node, ModelAnswer { messages, completion, note });
                self.keep(line).await;
            }
            Err(NoModelAnswer::Released(halt)) => {
                self.ends = true;
                self.halt = self.halt.take().or(halt);
            }
            Err(NoModelAnswer::Parked(waits_for)) => self.park(waits_for),
            Err(NoModelAnswer::Failed(error, halt)) => {
                let fatal = asked.calls.failure.as_ref().is_some_and(is_fatal);
                self.failure = asked.calls.failure.take().or_else(|| self.failure.take());
                let is_stopped = matches!(error.kind, RowErrorKind::Interrupted | RowErrorKind::RunStopped);
                if halt.is_some() || fatal || is_stopped {
                    self.halt = self.halt.take().or(halt);
                    return self.end_with(error);
                }
                let line = self.line(&StepEvent::ModelFailed { node, error: error.clone(), calls: reports });
                self.row_state.handle_model_failure(graph, node, messages, error);
                self.keep(line).await;
            }
        }
    }

    /// Adds the usage of a turn.
    fn count(&mut self, asked: &mut ModelTurnEnd) {
        let ModelTurnEnd { model_role, endpoint, calls, .. } = asked;
        self.unknown_calls += calls.unknown;
        self.saved += calls.saved;
        self.context.add_agent_name(asked.agent_index, &mut calls.reports);
        // An answer of another model is not what this one would give.
        self.stood_in |= *endpoint != 0;
        match self.endpoints.iter_mut().find(|(known, _)| known == model_role) {
            Some((_, known)) => *known = *endpoint,
            None if *endpoint != 0 => self.endpoints.push((*model_role, *endpoint)),
            None => {}
        }
    }

    fn turn_details(&self, asked: &ModelTurnEnd, completion: &Completion) -> TurnDetails {
        let last = self.calls.last();
        let endpoint = self.context.row_worker.endpoint(asked.model_role, asked.endpoint);
        let model = last.and_then(|call| call.model.clone());
        TurnDetails {
            start: asked.start,
            end: asked.end,
            model: model.or_else(|| endpoint.map(|endpoint| endpoint.name.clone())).unwrap_or_default(),
            usage: completion.usage,
            cost: last.and_then(|call| call.cost),
            finish: completion.finish,
            hosted: completion.hosted_tools.clone(),
        }
    }

    async fn handle_tool_end(&mut self, node: usize, index: usize, acted: ToolCallEnd) {
        let graph = &self.context.row_worker.graph;
        self.acting -= 1;
        self.tools.push(acted.report);
        match acted.output {
            Ok(output) => {
                let ended = StepEvent::ToolEnded { node, index, output, note: acted.note };
                let line = self.line(&ended);
                let StepEvent::ToolEnded { output, note, .. } = ended else { return };
                let note = note.filter(|_| graph.keeps_transcripts());
                self.row_state.handle_tool_output(graph, node, ToolResult { index, output, note });
                self.keep(line).await;
            }
            Err(ToolCallStop::Failed(error)) => self.end_with(error),
            Err(ToolCallStop::Halt(halt)) => self.stop_over(halt),
        }
    }

    /// The serialized step event, if turns are kept.
    fn line(&self, step_event: &StepEvent) -> Option<Vec<u8>> {
        self.context.shared.worker.checkpoint.then(|| {
            let mut line = Vec::with_capacity(512);
            step_event.write(&mut line);
            line
        })
    }

    /// Records what was reported to the row state, before anything follows from it. If the row has ended, its record
    /// contains everything.
    async fn keep(&mut self, line: Option<Vec<u8>>) {
        let Some(line) = line.filter(|_| !self.row_state.is_finished()) else { return };
        if let Err(halt) = self.context.append_event_line(line).await {
            self.stop_over(halt);
        }
    }

    /// Starts no further steps: the row continues once what it waits for is there.
    fn park(&mut self, waits_for: String) {
        if self.context.was_answered() && !self.context.shared.worker.checkpoint {
            let message = "a row that was answered can be parked only if turns are saved";
            return self.end_with(RowError::new(RowErrorKind::Internal, message));
        }
        self.ends = true;
        self.waits_for.push(waits_for);
    }

    fn stop_over(&mut self, halt: RunHalt) {
        self.halt = Some(halt);
        let message = "the run stopped before the row's last answer arrived";
        self.end_with(RowError::new(RowErrorKind::Interrupted, message));
    }

    /// Starts no further steps. Steps under way are waited for, because they may be billed or take effect; if they
    /// complete the row, the row is complete.
    fn end_with(&mut self, error: RowError) {
        self.ends = true;
        self.cause.get_or_insert(error);
    }

    /// Ends the row, now that nothing is under way for it any more.
    fn end_by_cause(&mut self) {
        let cause = match self.cause.take() {
            // A step that was under way since then may have ended without an answer.
            Some(cause) if cause.kind == RowErrorKind::RunStopped => self.context.stopped_error(),
            Some(cause) => cause,
            None => return,
        };
        self.row_state.abort(cause);
    }

    pub(crate) fn abort(&mut self, error: RowError) {
        self.row_state.abort(error);
    }

    /// Collects the calls of dropped steps; returns the error of the row in case it ends with them.
    pub(crate) fn collect_dropped(&mut self) -> RowError {
        let mut cut = self.context.take_dropped().unwrap_or_default();
        let error = cut.aborted_error().unwrap_or_else(|| self.context.stopped_error());
        self.calls.append(&mut cut.calls);
        self.unknown_calls += cut.unknown;
        self.saved += cut.saved;
        for DroppedToolCall { node, call, report } in cut.tools {
            self.row_state.add_unanswered_tool_call(node, &call, &report.tool);
            self.tools.push(report);
        }
        error
    }

    /// What the row waits for, if it is parked: then nothing is under way for it.
    pub(crate) fn take_parked(&mut self) -> Option<Vec<String>> {
        let is_parked = !self.waits_for.is_empty() && !self.row_state.is_finished();
        is_parked.then(|| std::mem::take(&mut self.waits_for))
    }

    pub(crate) fn take_halt(&mut self) -> Option<RunHalt> {
        self.halt.take()
    }

    /// Whether nothing was paid for and nothing was done, so that the row can be released.
    pub(crate) fn is_released(&mut self) -> bool {
        if self.row_state.is_finished() {
            return false;
        }
        match self.context.release_or_fail(None) {
            NoModelAnswer::Released(_) => true,
            NoModelAnswer::Parked(_) => false,
            NoModelAnswer::Failed(error, _) => {
                self.row_state.abort(error);
                false
            }
        }
    }

    /// The report of the row.
    pub(crate) fn finish(mut self, prepared: PreparedRow, start: Duration) -> EndedRow {
        let shared = self.context.shared;
        let PreparedRow { ordinal, id, row, key, .. } = prepared;
        let answer = self.row_state.answer().filter(|_| key.is_some() && !self.stood_in);
        let kept = answer.cloned().map(|text| {
            let is_reported = self.calls.iter().any(|call| call.usage.is_some());
            let model =
                self.calls.iter().rev().find(|call| call.error.is_none()).and_then(|call| call.model.clone());
            let redactor = &shared.worker.redactor;
            let is_json = self.context.row_worker.graph.schema().is_some();
            let text = if is_json { redactor.redact_json(&text) } else { redactor.redact(&text) };
            StoredAnswer {
                text: text.into_owned(),
                usage: is_reported.then(|| total_usage(&self.calls)),
                model,
            }
        });
        // In the batch lane, the result of the last attempt stands for those before it.
        let made = self.calls.iter().map(|call| call.batch.as_ref().map_or(1, |origin| origin.attempt));
        let attempts = Some(made.fold(0, u32::saturating_add)).filter(|&made| made > 0);
        let outcome = self.row_state.take_outcome(&self.context.row_worker.graph).unwrap_or_else(|| {
            Err(RowError::new(RowErrorKind::Internal, "the agents stopped without an answer"))
        });
        let failure = if outcome.is_err() { self.failure } else { None };
        let graph = &self.context.row_worker.graph;
        let traced = graph.keeps_transcripts();
        let below_min_rating = below_min_rating(graph, &self.row_state);
        let repairs = self.row_state.repairs();
        EndedRow {
            ordinal,
            number: self.context.number,
            id,
            row: Some(row),
            outcome: outcome.map_err(|error| RowError { attempts, ..error }),
            calls: self.calls,
            calls_before: self.calls_before,
            tools: self.tools,
            below_min_rating,
            repairs,
            start,
            end: shared.began.elapsed(),
            failure,
            unknown_calls: self.unknown_calls,
            saved: self.saved,
            key,
            kept,
            reused: None,
            trace: traced.then(|| Box::new(self.row_state.into_transcript())),
            verdict: ResultVerdict::Result,
            unfinished: None,
            again: false,
            kept_first: None,
        }
    }
}

fn agent_of_step(context: &RowContext<'_>, model_role: usize) -> usize {
    context
        .row_worker
        .graph
        .model_roles()
        .get(model_role)
        .map(|model_role| model_role.agent_index)
        .unwrap_or_default()
}

/// The answers that are rated lower than requested, with the agents that gave them.
fn below_min_rating(graph: &AgentGraph, row_state: &RowState) -> Vec<LowRatingReport> {
    let name =
        |agent_index: usize| graph.agents().get(agent_index).map(|agent_index| agent_index.name.clone());
    let report = |&LowRating { agent_index, rating, min_rating }: &LowRating| LowRatingReport {
        agent: name(agent_index).unwrap_or_default(),
        rating,
        min_rating,
    };
    row_state.low_ratings().iter().map(report).collect()
}
