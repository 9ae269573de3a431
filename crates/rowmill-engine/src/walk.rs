//! Executes the steps of a row, as many at once as its state allows.

use std::time::Duration;

use rowmill_core::agent::{Cast, Course, Happening, Shortfall, Step, TurnNote};
use rowmill_core::ports::{KeptAnswer, Verdict};
use rowmill_core::record::{CallReport, RatingReport, ToolReport, total_usage};
use rowmill_types::{CallError, Completion, ErrorKind, Message, Money, RowError};

use crate::account::Halt;
use crate::act::{Acted, NotActed, ToolStep};
use crate::ask::{Asked, ModelStep, NoAnswer, ask, is_fatal};
use crate::cut::CutTool;
use crate::flight::{Flight, StepKind};
use crate::prepared::{Before, Ended, Prepared};
use crate::row::RowContext;
use crate::work::FirstCall;

enum Arrived {
    Model(Box<Asked>),
    Tool { node: usize, index: usize, acted: Box<Acted> },
    Time { node: usize, limit: Duration },
}

/// A step that can be taken.
enum Ready<'r> {
    Model(ModelStep<'r>),
    Tool(ToolStep),
    Watch { node: usize, limit: Duration },
}

impl<'r> Ready<'r> {
    /// The node and the kind of the step.
    fn place(&self) -> (usize, StepKind) {
        match self {
            Self::Model(step) => (step.node, StepKind::Model),
            Self::Tool(step) => (step.node, StepKind::Tool),
            Self::Watch { node, .. } => (*node, StepKind::Watch),
        }
    }

    /// Carries it out.
    async fn arrive(self, context: &'r RowContext<'r>) -> Arrived {
        match self {
            Self::Model(step) => Arrived::Model(Box::new(ask(context, step).await)),
            Self::Tool(mut step) => {
                let acted = Box::new(context.act(&mut step).await);
                Arrived::Tool { node: step.node, index: step.index, acted }
            }
            Self::Watch { node, limit } => {
                tokio::time::sleep(limit).await;
                Arrived::Time { node, limit }
            }
        }
    }
}

/// The execution of a row.
pub(crate) struct Walk<'r> {
    context: &'r RowContext<'r>,
    course: Course,
    first: Option<FirstCall<'r>>,
    calls: Vec<CallReport>,
    /// The number of calls made before a crash.
    calls_before: usize,
    tools: Vec<ToolReport>,
    failure: Option<CallError>,
    unknown_calls: u64,
    saved: Money,
    /// Model calls and tool calls that are under way.
    asking: u64,
    acting: u64,
    /// Whether a model other than the first of a model role has answered.
    stood_in: bool,
    /// For each model role, the model it asked last, if it was not the first.
    lanes: Vec<(usize, usize)>,
    halt: Option<Halt>,
    /// Whether the row is to end once the steps under way have ended.
    ends: bool,
    /// Why, if it must not be released.
    cause: Option<RowError>,
    /// What it waits for, if answers arrive by another route.
    waits_for: Vec<String>,
}

impl<'r> Walk<'r> {
    pub(crate) fn new(
        context: &'r RowContext<'r>,
        course: Course,
        first: FirstCall<'r>,
        before: Before,
    ) -> Self {
        Self {
            context,
            course,
            first: Some(first),
            calls_before: before.calls.len(),
            calls: before.calls,
            tools: before.tools,
            failure: None,
            unknown_calls: 0,
            saved: Money::ZERO,
            asking: 0,
            acting: 0,
            stood_in: false,
            lanes: Vec::new(),
            halt: None,
            ends: false,
            cause: None,
            waits_for: Vec::new(),
        }
    }

    /// Executes steps until the row has ended.
    pub(crate) async fn go(&mut self) {
        let mut flight = Flight::new();
        loop {
            while let Some(step) = self.next_step() {
                let is_alone = flight.is_empty() && !self.course.has_steps();
                match self.ready(step) {
                    ready if !is_alone => {
                        let (node, kind) = ready.place();
                        flight.push(node, kind, ready.arrive(self.context));
                    }
                    // Most rows have one step at a time, which needs no allocation of its own.
                    Ready::Model(step) => {
                        let asked = ask(self.context, step).await;
                        self.heed_model(asked).await;
                    }
                    ready => {
                        let arrived = Box::pin(ready.arrive(self.context)).await;
                        self.heed(arrived).await;
                    }
                }
            }
            if self.course.is_over() {
                // Nobody waits for the steps that are still under way.
                return;
            }
            if self.ends && self.asking + self.acting == 0 {
                return self.end_by_cause();
            }
            let Some(arrived) = flight.next().await else { return };
            let is_time = matches!(arrived, Arrived::Time { .. });
            self.heed(arrived).await;
            if is_time {
                // A dropped step must not hold a slot that others wait for.
                let (asked, acted) = flight.cut(|node| self.course.has_ended(node));
                self.asking -= asked;
                self.acting -= acted;
            }
        }
    }

    fn next_step(&mut self) -> Option<Step> {
        // An aborted run waits for checks of answers, but not for anything that follows from them.
        if self.ends || self.context.shared.stop.is_aborting() { None } else { self.course.next_step() }
    }

    /// Prepares a step for execution.
    fn ready(&mut self, step: Step) -> Ready<'r> {
        match step {
            Step::CallModel { node, voice, messages } => Ready::Model(self.model_step(node, voice, messages)),
            Step::CallTool { node, index, tool, call } => {
                let voice = self.course.voice_of(node).unwrap_or_default();
                let member = member_of(self.context, voice);
                let (turn, of_node) = (self.course.turns(), self.course.turn_of(node));
                self.acting += 1;
                let waited = Duration::ZERO;
                Ready::Tool(ToolStep { node, index, tool, call, turn, of_node, member, voice, waited })
            }
            Step::Watch { node, limit } => Ready::Watch { node, limit },
        }
    }

    fn model_step(&mut self, node: usize, voice: usize, messages: Vec<Message>) -> ModelStep<'r> {
        self.asking += 1;
        let before = self.lanes.iter().find(|(known, _)| *known == voice).map(|(_, lane)| *lane);
        let (lane, ticket) = match self.first.take() {
            Some(first) if first.voice == voice => (first.lane, Some(first.ticket)),
            _ => (before.unwrap_or_else(|| self.context.crew.route(voice)), None),
        };
        let member = member_of(self.context, voice);
        ModelStep { node, voice, member, lane, ticket, turn: self.course.turns(), messages }
    }

    async fn heed(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Model(asked) => self.heed_model(*asked).await,
            Arrived::Tool { node, index, acted } => self.heed_tool(node, index, *acted).await,
            Arrived::Time { node, limit } => {
                if !self.course.has_ended(node) {
                    let line = self.line(&Happening::Expired { node, limit });
                    self.course.expired(&self.context.crew.cast, node, limit);
                    self.keep(line).await;
                }
            }
        }
    }

    async fn heed_model(&mut self, mut asked: Asked) {
        let context = self.context;
        let cast = &context.crew.cast;
        self.asking -= 1;
        self.count(&mut asked);
        let Asked { node, messages, prompt, outcome, calls, .. } = &mut asked;
        let (node, messages, prompt) = (*node, std::mem::take(messages), prompt.take());
        let reports = if context.shared.worker.checkpoint { calls.reports.clone() } else { Vec::new() };
        if self.calls.is_empty() {
            self.calls = std::mem::take(&mut calls.reports);
        } else {
            self.calls.append(&mut calls.reports);
        }
        let outcome = std::mem::replace(outcome, Err(NoAnswer::Released(None)));
        match outcome {
            Ok(completion) => {
                let note = cast.keeps_transcripts().then(|| self.turn_note(&asked, &completion));
                let answered = Happening::Answered { node, prompt, completion, note, calls: reports };
                let line = self.line(&answered);
                let Happening::Answered { completion, note, .. } = answered else { return };
                self.course.answered(cast, node, messages, completion, note);
                self.keep(line).await;
            }
            Err(NoAnswer::Released(halt)) => {
                self.ends = true;
                self.halt = self.halt.take().or(halt);
            }
            Err(NoAnswer::Parked(waits_for)) => self.park(waits_for),
            Err(NoAnswer::Failed(error, halt)) => {
                let fatal = asked.calls.failure.as_ref().is_some_and(is_fatal);
                self.failure = asked.calls.failure.take().or_else(|| self.failure.take());
                let is_stopped = matches!(error.kind, ErrorKind::Interrupted | ErrorKind::RunStopped);
                if halt.is_some() || fatal || is_stopped {
                    self.halt = self.halt.take().or(halt);
                    return self.end_with(error);
                }
                let line = self.line(&Happening::Failed { node, error: error.clone(), calls: reports });
                self.course.failed(cast, node, messages, error);
                self.keep(line).await;
            }
        }
    }

    /// Adds the usage of a turn.
    fn count(&mut self, asked: &mut Asked) {
        let Asked { voice, lane, calls, .. } = asked;
        self.unknown_calls += calls.unknown;
        self.saved += calls.saved;
        self.context.name_agent(asked.member, &mut calls.reports);
        // An answer of another model is not what this one would give.
        self.stood_in |= *lane != 0;
        match self.lanes.iter_mut().find(|(known, _)| known == voice) {
            Some((_, known)) => *known = *lane,
            None if *lane != 0 => self.lanes.push((*voice, *lane)),
            None => {}
        }
    }

    fn turn_note(&self, asked: &Asked, completion: &Completion) -> TurnNote {
        let last = self.calls.last();
        let lane = self.context.crew.lane(asked.voice, asked.lane);
        let model = last.and_then(|call| call.model.clone());
        TurnNote {
            start: asked.start,
            end: asked.end,
            model: model.or_else(|| lane.map(|lane| lane.name.clone())).unwrap_or_default(),
            usage: completion.usage,
            cost: last.and_then(|call| call.cost),
            finish: completion.finish,
            hosted: completion.hosted.clone(),
        }
    }

    async fn heed_tool(&mut self, node: usize, index: usize, acted: Acted) {
        let cast = &self.context.crew.cast;
        self.acting -= 1;
        self.tools.push(acted.report);
        match acted.output {
            Ok(output) => {
                let ended = Happening::ToolEnded { node, index, output, note: acted.note };
                let line = self.line(&ended);
                let Happening::ToolEnded { output, note, .. } = ended else { return };
                let note = note.filter(|_| cast.keeps_transcripts());
                self.course.tool_ended(cast, node, index, output, note);
                self.keep(line).await;
            }
            Err(NotActed::Failed(error)) => self.end_with(error),
            Err(NotActed::Halt(halt)) => self.stop_over(halt),
        }
    }

    /// The serialized step event, if turns are kept.
    fn line(&self, happening: &Happening) -> Option<Vec<u8>> {
        self.context.shared.worker.checkpoint.then(|| {
            let mut line = Vec::with_capacity(512);
            happening.write(&mut line);
            line
        })
    }

    /// Records what was reported to the row state, before anything follows from it. If the row has ended, its record
    /// contains everything.
    async fn keep(&mut self, line: Option<Vec<u8>>) {
        let Some(line) = line.filter(|_| !self.course.is_over()) else { return };
        if let Err(halt) = self.context.append(line).await {
            self.stop_over(halt);
        }
    }

    /// Starts no further steps: the row continues once what it waits for is there.
    fn park(&mut self, waits_for: String) {
        if self.context.was_answered() && !self.context.shared.worker.checkpoint {
            let message = "a row that was answered can be parked only if turns are saved";
            return self.end_with(RowError::new(ErrorKind::Internal, message));
        }
        self.ends = true;
        self.waits_for.push(waits_for);
    }

    fn stop_over(&mut self, halt: Halt) {
        self.halt = Some(halt);
        let message = "the run stopped before the row's last answer arrived";
        self.end_with(RowError::new(ErrorKind::Interrupted, message));
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
            Some(cause) if cause.kind == ErrorKind::RunStopped => self.context.stopped(),
            Some(cause) => cause,
            None => return,
        };
        self.course.abort(cause);
    }

    pub(crate) fn abort(&mut self, error: RowError) {
        self.course.abort(error);
    }

    /// Collects the calls of dropped steps; returns the error of the row in case it ends with them.
    pub(crate) fn take_in_cut(&mut self) -> RowError {
        let mut cut = self.context.take_cut().unwrap_or_default();
        let error = cut.error().unwrap_or_else(|| self.context.stopped());
        self.calls.append(&mut cut.calls);
        self.unknown_calls += cut.unknown;
        self.saved += cut.saved;
        for CutTool { node, call, report } in cut.tools {
            self.course.note_unanswered(node, &call, &report.tool);
            self.tools.push(report);
        }
        error
    }

    /// What the row waits for, if it is parked: then nothing is under way for it.
    pub(crate) fn take_parked(&mut self) -> Option<Vec<String>> {
        let is_parked = !self.waits_for.is_empty() && !self.course.is_over();
        is_parked.then(|| std::mem::take(&mut self.waits_for))
    }

    pub(crate) fn take_halt(&mut self) -> Option<Halt> {
        self.halt.take()
    }

    /// Whether nothing was paid for and nothing was done, so that the row can be released.
    pub(crate) fn is_released(&mut self) -> bool {
        if self.course.is_over() {
            return false;
        }
        match self.context.given_back(None) {
            NoAnswer::Released(_) => true,
            NoAnswer::Parked(_) => false,
            NoAnswer::Failed(error, _) => {
                self.course.abort(error);
                false
            }
        }
    }

    /// The report of the row.
    pub(crate) fn end(mut self, prepared: Prepared, start: Duration) -> Ended {
        let shared = self.context.shared;
        let Prepared { ordinal, id, row, key, .. } = prepared;
        let answer = self.course.answer().filter(|_| key.is_some() && !self.stood_in);
        let kept = answer.cloned().map(|text| {
            let told = self.calls.iter().any(|call| call.usage.is_some());
            let model =
                self.calls.iter().rev().find(|call| call.error.is_none()).and_then(|call| call.model.clone());
            let redactor = &shared.worker.redactor;
            let is_json = self.context.crew.cast.schema().is_some();
            let text = if is_json { redactor.redact_json(&text) } else { redactor.redact(&text) };
            KeptAnswer { text: text.into_owned(), usage: told.then(|| total_usage(&self.calls)), model }
        });
        let attempts = u32::try_from(self.calls.len()).ok().filter(|&made| made > 0);
        let outcome = self.course.take_outcome(&self.context.crew.cast).unwrap_or_else(|| {
            Err(RowError::new(ErrorKind::Internal, "the agents stopped without an answer"))
        });
        let failure = if outcome.is_err() { self.failure } else { None };
        let cast = &self.context.crew.cast;
        let traced = cast.keeps_transcripts();
        let below_min_rating = below_min_rating(cast, &self.course);
        let repairs = self.course.repairs();
        Ended {
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
            trace: traced.then(|| Box::new(self.course.into_transcript())),
            verdict: Verdict::Result,
            unfinished: None,
            again: false,
            kept_first: None,
        }
    }
}

fn member_of(context: &RowContext<'_>, voice: usize) -> usize {
    context.crew.cast.voices().get(voice).map(|voice| voice.member).unwrap_or_default()
}

/// The answers that are rated lower than requested, with the agents that gave them.
fn below_min_rating(cast: &Cast, course: &Course) -> Vec<RatingReport> {
    let name = |member: usize| cast.members().get(member).map(|member| member.name.clone());
    let report = |&Shortfall { member, rating, min_rating }: &Shortfall| RatingReport {
        agent: name(member).unwrap_or_default(),
        rating,
        min_rating,
    };
    course.shortfalls().iter().map(report).collect()
}
