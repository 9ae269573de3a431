//! The state machine of one row in its agent graph.

use std::collections::VecDeque;

use rowmill_types::settings::TURNS;
use rowmill_types::{Completion, ErrorKind, Message, RowError, ToolOutput};

use super::cast::{Cast, Route};
use super::conversation::Conversation;
use super::form::Form;
use super::step::{Act, Answer, Begin, Move, Step, model_calls};
use super::transcript::{Caller, Shortfall, ToolNote, Transcript, TurnNote};
use super::workflow::{self, Workflow};

enum State {
    Conversation(Box<Conversation>),
    Workflow(Box<dyn Workflow>),
    Ended(Option<Box<Conversation>>),
}

struct Node {
    /// The node that started it, and the key of its answer there.
    parent: Option<(usize, usize)>,
    /// The id of the call that started it, if it is an agent's tool and transcripts are kept.
    call: Option<String>,
    state: State,
}

/// The state of a row.
pub struct Course {
    nodes: Vec<Node>,
    ready: VecDeque<Step>,
    turns: u32,
    outcome: Outcome,
    shortfalls: Vec<Shortfall>,
    /// Answers that violated the schema and were requested again.
    repairs: u64,
}

enum Outcome {
    Open,
    Known(Answer),
    Taken,
}

impl std::fmt::Debug for Course {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Course")
            .field("nodes", &self.nodes.len())
            .field("turns", &self.turns)
            .field("is_over", &self.is_over())
            .finish_non_exhaustive()
    }
}

impl Course {
    /// Starts a row with its prompt.
    #[must_use]
    pub fn start(cast: &Cast, prompt: Vec<Message>) -> Self {
        let mut course = Self {
            nodes: Vec::new(),
            ready: VecDeque::new(),
            turns: 0,
            outcome: Outcome::Open,
            shortfalls: Vec::new(),
            repairs: 0,
        };
        let (member, form) = (cast.worker(), cast.form());
        course.begin(cast, None, Begin { key: 0, member, form, own: false, messages: prompt, limit: None });
        course
    }

    /// The next step that can be taken, if there is one.
    pub fn next_step(&mut self) -> Option<Step> {
        while !self.is_over() {
            match self.ready.pop_front()? {
                // It ended before the watch began.
                Step::Watch { node, .. } if self.has_ended(node) => {}
                step => return Some(step),
            }
        }
        None
    }

    /// Whether there are steps that can be taken.
    #[must_use]
    pub fn has_steps(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The first model call that can be made: its model role and its messages.
    #[must_use]
    pub fn first_call(&self) -> Option<(usize, &[Message])> {
        self.ready.iter().find_map(|step| match step {
            Step::CallModel { voice, messages, .. } => Some((*voice, messages.as_slice())),
            Step::CallTool { .. } | Step::Watch { .. } => None,
        })
    }

    /// The model role with which a node asks its model.
    #[must_use]
    pub fn voice_of(&self, node: usize) -> Option<usize> {
        match &self.nodes.get(node)?.state {
            State::Conversation(conversation) | State::Ended(Some(conversation)) => {
                Some(conversation.voice())
            }
            State::Workflow(_) | State::Ended(None) => None,
        }
    }

    /// The answer, once there is one: text, or JSON that satisfies the schema.
    #[must_use]
    pub fn answer(&self) -> Option<&String> {
        if let Outcome::Known(Ok(answer)) = &self.outcome { Some(answer) } else { None }
    }

    /// Whether the row has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self.outcome, Outcome::Open)
    }

    /// The row's result as JSON text, or its error; `None` until the row has ended.
    pub fn take_outcome(&mut self, cast: &Cast) -> Option<Answer> {
        let outcome = match std::mem::replace(&mut self.outcome, Outcome::Taken) {
            Outcome::Known(outcome) => outcome,
            other => {
                self.outcome = other;
                return None;
            }
        };
        Some(match cast.form() {
            // A string is always JSON, so the fallback is never used.
            Form::Text => outcome.map(|text| serde_json::to_string(&text).unwrap_or_default()),
            _ => outcome,
        })
    }

    /// The number of model calls so far, including those under way.
    #[must_use]
    pub fn turns(&self) -> u32 {
        let waiting = self.ready.iter().filter(|step| matches!(step, Step::CallModel { .. })).count();
        self.turns.saturating_sub(u32::try_from(waiting).unwrap_or(u32::MAX))
    }

    /// The number of model calls that a node has requested. Together with the node it identifies the node's last turn,
    /// also after a crash.
    #[must_use]
    pub fn turn_of(&self, node: usize) -> u32 {
        match self.nodes.get(node).map(|node| &node.state) {
            Some(State::Conversation(conversation)) => conversation.turns(),
            _ => 0,
        }
    }

    /// Reports a model's answer, with the messages that were sent.
    pub fn answered(
        &mut self,
        cast: &Cast,
        node: usize,
        messages: Vec<Message>,
        completion: Completion,
        note: Option<TurnNote>,
    ) {
        let step = match self.nodes.get_mut(node).map(|node| &mut node.state) {
            Some(State::Conversation(conversation)) => {
                let before = conversation.repairs();
                let step = conversation.answered(cast, messages, completion, note);
                self.repairs += u64::from(conversation.repairs() - before);
                step
            }
            _ => return self.give_back(node, messages),
        };
        let step = self.unless_in_vain(cast, node, step);
        self.go(cast, node, step);
    }

    /// Reports that a model gave no answer, and that none will come.
    pub fn failed(&mut self, cast: &Cast, node: usize, messages: Vec<Message>, error: RowError) {
        self.give_back(node, messages);
        if !self.has_ended(node) {
            self.go(cast, node, Move::Done(Err(error)));
        }
    }

    /// Reports the result of a tool.
    pub fn tool_ended(
        &mut self,
        cast: &Cast,
        node: usize,
        index: usize,
        output: ToolOutput,
        note: Option<ToolNote>,
    ) {
        let step = match self.nodes.get_mut(node).map(|node| &mut node.state) {
            Some(State::Conversation(conversation)) => {
                conversation.note_tool(note);
                conversation.call_ended(cast, index, output)
            }
            _ => return,
        };
        self.go(cast, node, step);
    }

    /// Reports that the time limit of a node has passed. Everything that the node started is dropped.
    pub fn expired(&mut self, cast: &Cast, node: usize, limit: std::time::Duration) {
        if self.has_ended(node) {
            return;
        }
        self.forget_below(cast, node);
        let message = format!("no answer within {} s", limit.as_secs_f64());
        self.go(cast, node, Move::Done(Err(RowError::new(ErrorKind::Timeout, message))));
    }

    /// Whether nothing more is expected from a node.
    #[must_use]
    pub fn has_ended(&self, node: usize) -> bool {
        !matches!(
            self.nodes.get(node).map(|node| &node.state),
            Some(State::Conversation(_) | State::Workflow(_))
        )
    }

    /// Ends the row, whatever is still open.
    pub fn abort(&mut self, error: RowError) {
        self.conclude(Err(error));
    }

    /// The transcript, once the row has ended.
    #[must_use]
    pub fn into_transcript(self) -> Transcript {
        let mut conversations = Vec::new();
        // For each node: its conversation, or the nearest one above it.
        let mut nearest: Vec<Option<usize>> = Vec::with_capacity(self.nodes.len());
        for node in self.nodes {
            let above = node.parent.and_then(|(parent, _)| nearest.get(parent).copied().flatten());
            match node.state {
                State::Conversation(conversation) | State::Ended(Some(conversation)) => {
                    let caller = above.map(|conversation| Caller { conversation, call: node.call });
                    nearest.push(Some(conversations.len()));
                    conversations.push(conversation.into_told(caller));
                }
                State::Workflow(_) | State::Ended(None) => nearest.push(above),
            }
        }
        Transcript { conversations }
    }

    /// Notes a tool call that had no result when the run was interrupted.
    pub fn note_unanswered(&mut self, node: usize, call: &str, tool: &str) {
        if let Some(State::Conversation(conversation)) = self.nodes.get_mut(node).map(|node| &mut node.state)
        {
            conversation.note_unanswered(call, tool);
        }
    }

    /// The answers of workflows that are rated lower than requested.
    #[must_use]
    pub fn shortfalls(&self) -> &[Shortfall] {
        &self.shortfalls
    }

    /// How many answers violated the schema and were requested again.
    #[must_use]
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    fn call_id(&self, node: usize, index: usize) -> Option<String> {
        match &self.nodes.get(node)?.state {
            State::Conversation(conversation) => conversation.call_id(index).map(str::to_owned),
            State::Workflow(_) | State::Ended(_) => None,
        }
    }

    /// The first outcome counts.
    fn conclude(&mut self, answer: Answer) {
        if !self.is_over() {
            self.outcome = Outcome::Known(answer);
        }
    }

    /// Starts an agent.
    fn begin(&mut self, cast: &Cast, parent: Option<usize>, begin: Begin) {
        let Begin { key, member, form, own, messages, limit } = begin;
        let Some(found) = cast.members().get(member) else { return };
        let node = self.nodes.len();
        let workflow = if own { None } else { workflow::of(member, found, form) };
        let (state, step) = match workflow {
            None => {
                let conversation = Conversation::new(cast, member, form, messages);
                (State::Conversation(Box::new(conversation)), Move::Ask)
            }
            Some(mut workflow) => {
                let step = workflow.begin(cast, messages);
                (State::Workflow(workflow), step)
            }
        };
        let call = parent.filter(|_| cast.traced).and_then(|parent| self.call_id(parent, key));
        self.nodes.push(Node { parent: parent.map(|parent| (parent, key)), call, state });
        if let Some(limit) = limit {
            self.ready.push_back(Step::Watch { node, limit });
        }
        self.go(cast, node, step);
    }

    /// Carries out what a node requests, and the consequences for the nodes above it.
    fn go(&mut self, cast: &Cast, mut node: usize, mut step: Move) {
        loop {
            let answer = match step {
                Move::Wait => return,
                Move::Ask => match self.ask(cast, node) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                },
                Move::Act(acts) => return self.act(cast, node, acts),
                Move::Done(answer) => answer,
            };
            let Some((parent, key)) = self.end(cast, node) else {
                return self.conclude(answer);
            };
            step = match self.nodes.get_mut(parent).map(|parent| &mut parent.state) {
                Some(State::Conversation(conversation)) => conversation.child_ended(cast, key, answer),
                Some(State::Workflow(workflow)) => workflow.ended(cast, key, answer),
                _ => return,
            };
            node = parent;
        }
    }

    /// Requests a model call, if the row may still make one.
    fn ask(&mut self, cast: &Cast, node: usize) -> Result<(), RowError> {
        let Some(State::Conversation(conversation)) = self.nodes.get_mut(node).map(|node| &mut node.state)
        else {
            return Err(RowError::new(ErrorKind::Internal, "a workflow has no model"));
        };
        if let Some(most) = cast.turns.filter(|most| self.turns >= *most) {
            return Err(out_of_turns(cast, most, conversation));
        }
        self.turns += 1;
        let (voice, messages) = conversation.ask();
        self.ready.push_back(Step::CallModel { node, voice, messages });
        Ok(())
    }

    /// A tool must not take effect when the row has no turn left to report its result to a model.
    fn unless_in_vain(&self, cast: &Cast, node: usize, step: Move) -> Move {
        let is_answer = |act: &Act| match act {
            Act::Tool { tool, .. } => {
                cast.tools().get(*tool).is_some_and(|tool| tool.route == Route::Passthrough)
            }
            Act::Start(_) => false,
        };
        match (&step, cast.turns, self.nodes.get(node).map(|node| &node.state)) {
            (Move::Act(acts), Some(most), Some(State::Conversation(conversation)))
                if self.turns >= most && !acts.iter().any(is_answer) =>
            {
                Move::Done(Err(out_of_turns(cast, most, conversation)))
            }
            _ => step,
        }
    }

    fn act(&mut self, cast: &Cast, node: usize, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Tool { index, tool, call } => {
                    self.ready.push_back(Step::CallTool { node, index, tool, call });
                }
                Act::Start(begin) => self.begin(cast, Some(node), begin),
            }
        }
    }

    /// Ends a node; returns the node that waits for it.
    fn end(&mut self, cast: &Cast, node: usize) -> Option<(usize, usize)> {
        let node = self.nodes.get_mut(node)?;
        if let State::Workflow(workflow) = &node.state {
            self.shortfalls.extend(workflow.shortfall());
        }
        node.state = match std::mem::replace(&mut node.state, State::Ended(None)) {
            State::Conversation(conversation) => State::Ended(cast.traced.then_some(conversation)),
            State::Workflow(_) => State::Ended(None),
            ended @ State::Ended(_) => ended,
        };
        node.parent
    }

    /// Drops everything that a node started, and the steps still open for it.
    fn forget_below(&mut self, cast: &Cast, top: usize) {
        let mut gone = vec![false; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            let below = node.parent.is_some_and(|(parent, _)| gone.get(parent) == Some(&true));
            if let Some(flag) = gone.get_mut(index) {
                *flag = index == top || below;
            }
        }
        for step in std::mem::take(&mut self.ready) {
            match step {
                Step::CallModel { node, .. } | Step::CallTool { node, .. } | Step::Watch { node, .. }
                    if gone.get(node) != Some(&true) =>
                {
                    self.ready.push_back(step);
                }
                Step::CallModel { node, messages, .. } => self.give_back(node, messages),
                Step::CallTool { .. } | Step::Watch { .. } => {}
            }
        }
        let below = |index: &usize| *index != top && gone.get(*index) == Some(&true);
        for index in (0..gone.len()).filter(below) {
            self.end(cast, index);
        }
    }

    /// Returns the messages of a request to the conversation, for its transcript.
    fn give_back(&mut self, node: usize, messages: Vec<Message>) {
        if let Some(State::Conversation(conversation) | State::Ended(Some(conversation))) =
            self.nodes.get_mut(node).map(|node| &mut node.state)
        {
            conversation.give_back(messages);
        }
    }

    /// Whether the node exists.
    pub(super) fn knows(&self, node: usize) -> bool {
        node < self.nodes.len()
    }

    /// Takes a step out of order.
    pub(super) fn take_ready(&mut self, is_wanted: impl FnMut(&Step) -> bool) -> Option<Step> {
        let at = self.ready.iter().position(is_wanted)?;
        self.ready.remove(at)
    }
}

fn out_of_turns(cast: &Cast, most: u32, conversation: &Conversation) -> RowError {
    let message = format!("no result after {} ({TURNS})", model_calls(most));
    RowError { raw_text: conversation.last_said(), ..RowError::new(ErrorKind::TurnLimit, message) }
        .worded(cast.vocabulary)
}
