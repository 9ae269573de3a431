//! The state machine of one row in its agent graph.

use std::collections::VecDeque;

use rowmill_types::settings::TURNS;
use rowmill_types::{Message, RequestPurpose, RowError, RowErrorKind};

use super::answer_format::AnswerFormat;
use super::conversation::AgentConversation;
use super::graph::{AgentGraph, ToolCallAction};
use super::step::{
    AgentAnswer, ModelAnswer, NodeAction, NodeTask, RowStep, StartAgent, ToolResult, model_calls_text,
};
use super::transcript::{CallingConversation, LowRating, RowTranscript};
use super::workflow::{self, Workflow};

enum NodeState {
    Conversation(Box<AgentConversation>),
    Workflow(Box<dyn Workflow>),
    Ended(Option<Box<AgentConversation>>),
}

struct RowNode {
    /// The node that started it, and the key of its answer there.
    parent: Option<(usize, usize)>,
    /// The id of the call that started it, if it is an agent's tool and transcripts are kept.
    call: Option<String>,
    state: NodeState,
}

/// The state of a row.
pub struct RowState {
    nodes: Vec<RowNode>,
    ready: VecDeque<RowStep>,
    turns: u32,
    outcome: OutcomeSlot,
    low_ratings: Vec<LowRating>,
    /// Answers that violated the schema and were requested again.
    repairs: u64,
}

enum OutcomeSlot {
    Open,
    Known(AgentAnswer),
    Taken,
}

impl std::fmt::Debug for RowState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RowState")
            .field("nodes", &self.nodes.len())
            .field("turns", &self.turns)
            .field("is_over", &self.is_finished())
            .finish_non_exhaustive()
    }
}

impl RowState {
    /// Starts a row with its prompt.
    #[must_use]
    pub fn start(graph: &AgentGraph, prompt: Vec<Message>) -> Self {
        let mut row_state = Self {
            nodes: Vec::new(),
            ready: VecDeque::new(),
            turns: 0,
            outcome: OutcomeSlot::Open,
            low_ratings: Vec::new(),
            repairs: 0,
        };
        let (agent_index, form) = (graph.entry_agent(), graph.answer_format());
        row_state.begin(
            graph,
            None,
            StartAgent {
                key: 0,
                agent_index,
                answer_format: form,
                uses_own_model: false,
                messages: prompt,
                limit: None,
            },
        );
        row_state
    }

    /// The next step that can be taken, if there is one.
    pub fn next_step(&mut self) -> Option<RowStep> {
        while !self.is_finished() {
            match self.ready.pop_front()? {
                // It ended before the watch began.
                RowStep::StartTimer { node, .. } if self.node_has_ended(node) => {}
                step => return Some(step),
            }
        }
        None
    }

    /// Whether there are steps that can be taken.
    #[must_use]
    pub fn has_ready_steps(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The first model call that can be made: its model role and its messages.
    #[must_use]
    pub fn first_ready_call(&self) -> Option<(usize, &[Message])> {
        self.ready.iter().find_map(|step| match step {
            RowStep::CallModel { model_role, messages, .. } => Some((*model_role, messages.as_slice())),
            RowStep::CallTool { .. } | RowStep::StartTimer { .. } => None,
        })
    }

    /// The model role with which a node asks its model.
    #[must_use]
    pub fn node_model_role(&self, node: usize) -> Option<usize> {
        match &self.nodes.get(node)?.state {
            NodeState::Conversation(conversation) | NodeState::Ended(Some(conversation)) => {
                Some(conversation.model_role())
            }
            NodeState::Workflow(_) | NodeState::Ended(None) => None,
        }
    }

    /// The answer, once there is one: text, or JSON that satisfies the schema.
    #[must_use]
    pub fn answer(&self) -> Option<&String> {
        if let OutcomeSlot::Known(Ok(answer)) = &self.outcome { Some(answer) } else { None }
    }

    /// Whether the row has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !matches!(self.outcome, OutcomeSlot::Open)
    }

    /// The row's result as JSON text, or its error; `None` until the row has ended.
    pub fn take_outcome(&mut self, graph: &AgentGraph) -> Option<AgentAnswer> {
        let outcome = match std::mem::replace(&mut self.outcome, OutcomeSlot::Taken) {
            OutcomeSlot::Known(outcome) => outcome,
            other => {
                self.outcome = other;
                return None;
            }
        };
        Some(match graph.answer_format() {
            // A string is always JSON, so the fallback is never used.
            AnswerFormat::Text => outcome.map(|text| serde_json::to_string(&text).unwrap_or_default()),
            _ => outcome,
        })
    }

    /// The number of model calls so far, including those under way.
    #[must_use]
    pub fn turn_count(&self) -> u32 {
        let waiting = self.ready.iter().filter(|step| matches!(step, RowStep::CallModel { .. })).count();
        self.turns.saturating_sub(u32::try_from(waiting).unwrap_or(u32::MAX))
    }

    /// The number of model calls that a node has requested. Together with the node it identifies the node's last turn,
    /// also after a crash.
    #[must_use]
    pub fn node_turn_count(&self, node: usize) -> u32 {
        match self.nodes.get(node).map(|node| &node.state) {
            Some(NodeState::Conversation(conversation)) => conversation.turns(),
            _ => 0,
        }
    }

    /// What the answer to the last turn that a node has requested is for.
    #[must_use]
    pub fn purpose_of(&self, node: usize) -> RequestPurpose {
        match self.nodes.get(node).map(|node| &node.state) {
            Some(NodeState::Conversation(conversation)) => conversation.purpose(),
            _ => RequestPurpose::Turn,
        }
    }

    /// Reports a model's answer, with the messages that were sent.
    pub fn handle_answer(&mut self, graph: &AgentGraph, node: usize, answer: ModelAnswer) {
        let step = match self.nodes.get_mut(node).map(|node| &mut node.state) {
            Some(NodeState::Conversation(conversation)) => {
                let before = conversation.repairs();
                let step = conversation.handle_answer(graph, answer);
                self.repairs += u64::from(conversation.repairs() - before);
                step
            }
            _ => return self.give_back(node, answer.messages),
        };
        let step = self.unless_in_vain(graph, node, step);
        self.go(graph, node, step);
    }

    /// Reports that a model gave no answer, and that none will come.
    pub fn handle_model_failure(
        &mut self,
        graph: &AgentGraph,
        node: usize,
        messages: Vec<Message>,
        error: RowError,
    ) {
        self.give_back(node, messages);
        if !self.node_has_ended(node) {
            self.go(graph, node, NodeAction::Done(Err(error)));
        }
    }

    /// Reports the result of a tool.
    pub fn handle_tool_output(&mut self, graph: &AgentGraph, node: usize, result: ToolResult) {
        let ToolResult { index, output, note } = result;
        let step = match self.nodes.get_mut(node).map(|node| &mut node.state) {
            Some(NodeState::Conversation(conversation)) => {
                conversation.add_tool_call_details(note);
                conversation.handle_call_end(graph, index, output)
            }
            _ => return,
        };
        self.go(graph, node, step);
    }

    /// Reports that the time limit of a node has passed. Everything that the node started is dropped.
    pub fn handle_node_timeout(&mut self, graph: &AgentGraph, node: usize, limit: std::time::Duration) {
        if self.node_has_ended(node) {
            return;
        }
        self.forget_below(graph, node);
        let message = format!("no answer within {} s", limit.as_secs_f64());
        self.go(graph, node, NodeAction::Done(Err(RowError::new(RowErrorKind::Timeout, message))));
    }

    /// Whether nothing more is expected from a node.
    #[must_use]
    pub fn node_has_ended(&self, node: usize) -> bool {
        !matches!(
            self.nodes.get(node).map(|node| &node.state),
            Some(NodeState::Conversation(_) | NodeState::Workflow(_))
        )
    }

    /// Ends the row, whatever is still open.
    pub fn abort(&mut self, error: RowError) {
        self.conclude(Err(error));
    }

    /// The transcript, once the row has ended.
    #[must_use]
    pub fn into_transcript(self) -> RowTranscript {
        let mut conversations = Vec::new();
        // For each node: its conversation, or the nearest one above it.
        let mut nearest: Vec<Option<usize>> = Vec::with_capacity(self.nodes.len());
        for node in self.nodes {
            let above = node.parent.and_then(|(parent, _)| nearest.get(parent).copied().flatten());
            match node.state {
                NodeState::Conversation(conversation) | NodeState::Ended(Some(conversation)) => {
                    let caller =
                        above.map(|conversation| CallingConversation { conversation, call: node.call });
                    nearest.push(Some(conversations.len()));
                    conversations.push(conversation.into_transcript(caller));
                }
                NodeState::Workflow(_) | NodeState::Ended(None) => nearest.push(above),
            }
        }
        RowTranscript { conversations }
    }

    /// Notes a tool call that had no result when the run was interrupted.
    pub fn add_unanswered_tool_call(&mut self, node: usize, call: &str, tool: &str) {
        if let Some(NodeState::Conversation(conversation)) =
            self.nodes.get_mut(node).map(|node| &mut node.state)
        {
            conversation.add_unanswered_call(call, tool);
        }
    }

    /// The answers of workflows that are rated lower than requested.
    #[must_use]
    pub fn low_ratings(&self) -> &[LowRating] {
        &self.low_ratings
    }

    /// How many answers violated the schema and were requested again.
    #[must_use]
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    fn call_id(&self, node: usize, index: usize) -> Option<String> {
        match &self.nodes.get(node)?.state {
            NodeState::Conversation(conversation) => conversation.call_id(index).map(str::to_owned),
            NodeState::Workflow(_) | NodeState::Ended(_) => None,
        }
    }

    /// The first outcome counts.
    fn conclude(&mut self, answer: AgentAnswer) {
        if !self.is_finished() {
            self.outcome = OutcomeSlot::Known(answer);
        }
    }

    /// Starts an agent.
    fn begin(&mut self, graph: &AgentGraph, parent: Option<usize>, begin: StartAgent) {
        let StartAgent { key, agent_index, answer_format: form, uses_own_model: own, messages, limit } =
            begin;
        let Some(found) = graph.agents().get(agent_index) else { return };
        let node = self.nodes.len();
        let workflow = if own { None } else { workflow::of(agent_index, found, form) };
        let (state, step) = match workflow {
            None => {
                let conversation = AgentConversation::new(graph, agent_index, form, messages);
                (NodeState::Conversation(Box::new(conversation)), NodeAction::Ask)
            }
            Some(mut workflow) => {
                let step = workflow.begin(graph, messages);
                (NodeState::Workflow(workflow), step)
            }
        };
        let call = parent.filter(|_| graph.traced).and_then(|parent| self.call_id(parent, key));
        self.nodes.push(RowNode { parent: parent.map(|parent| (parent, key)), call, state });
        if let Some(limit) = limit {
            self.ready.push_back(RowStep::StartTimer { node, limit });
        }
        self.go(graph, node, step);
    }

    /// Carries out what a node requests, and the consequences for the nodes above it.
    fn go(&mut self, graph: &AgentGraph, mut node: usize, mut step: NodeAction) {
        loop {
            let answer = match step {
                NodeAction::Wait => return,
                NodeAction::Ask => match self.ask(graph, node) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                },
                NodeAction::StartTasks(acts) => return self.act(graph, node, acts),
                NodeAction::Done(answer) => answer,
            };
            let Some((parent, key)) = self.end(graph, node) else {
                return self.conclude(answer);
            };
            step = match self.nodes.get_mut(parent).map(|parent| &mut parent.state) {
                Some(NodeState::Conversation(conversation)) => {
                    conversation.handle_child_end(graph, key, answer)
                }
                Some(NodeState::Workflow(workflow)) => workflow.handle_agent_end(graph, key, answer),
                _ => return,
            };
            node = parent;
        }
    }

    /// Requests a model call, if the row may still make one.
    fn ask(&mut self, graph: &AgentGraph, node: usize) -> Result<(), RowError> {
        let Some(NodeState::Conversation(conversation)) =
            self.nodes.get_mut(node).map(|node| &mut node.state)
        else {
            return Err(RowError::new(RowErrorKind::Internal, "a workflow has no model"));
        };
        if let Some(most) = graph.turns.filter(|most| self.turns >= *most) {
            return Err(out_of_turns(graph, most, conversation));
        }
        self.turns += 1;
        let (model_role, messages) = conversation.next_request();
        self.ready.push_back(RowStep::CallModel { node, model_role, messages });
        Ok(())
    }

    /// A tool must not take effect when the row has no turn left to report its result to a model.
    fn unless_in_vain(&self, graph: &AgentGraph, node: usize, step: NodeAction) -> NodeAction {
        let is_answer = |act: &NodeTask| match act {
            NodeTask::Tool { tool, .. } => {
                graph.tools().get(*tool).is_some_and(|tool| tool.route == ToolCallAction::Passthrough)
            }
            NodeTask::Start(_) => false,
        };
        match (&step, graph.turns, self.nodes.get(node).map(|node| &node.state)) {
            (NodeAction::StartTasks(acts), Some(most), Some(NodeState::Conversation(conversation)))
                if self.turns >= most && !acts.iter().any(is_answer) =>
            {
                NodeAction::Done(Err(out_of_turns(graph, most, conversation)))
            }
            _ => step,
        }
    }

    fn act(&mut self, graph: &AgentGraph, node: usize, acts: Vec<NodeTask>) {
        for act in acts {
            match act {
                NodeTask::Tool { index, tool, call } => {
                    self.ready.push_back(RowStep::CallTool { node, index, tool, call });
                }
                NodeTask::Start(begin) => self.begin(graph, Some(node), begin),
            }
        }
    }

    /// Ends a node; returns the node that waits for it.
    fn end(&mut self, graph: &AgentGraph, node: usize) -> Option<(usize, usize)> {
        let node = self.nodes.get_mut(node)?;
        if let NodeState::Workflow(workflow) = &node.state {
            self.low_ratings.extend(workflow.low_rating());
        }
        node.state = match std::mem::replace(&mut node.state, NodeState::Ended(None)) {
            NodeState::Conversation(conversation) => NodeState::Ended(graph.traced.then_some(conversation)),
            NodeState::Workflow(_) => NodeState::Ended(None),
            ended @ NodeState::Ended(_) => ended,
        };
        node.parent
    }

    /// Drops everything that a node started, and the steps still open for it.
    fn forget_below(&mut self, graph: &AgentGraph, top: usize) {
        let mut gone = vec![false; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            let below = node.parent.is_some_and(|(parent, _)| gone.get(parent) == Some(&true));
            if let Some(flag) = gone.get_mut(index) {
                *flag = index == top || below;
            }
        }
        for step in std::mem::take(&mut self.ready) {
            match step {
                RowStep::CallModel { node, .. }
                | RowStep::CallTool { node, .. }
                | RowStep::StartTimer { node, .. }
                    if gone.get(node) != Some(&true) =>
                {
                    self.ready.push_back(step);
                }
                RowStep::CallModel { node, messages, .. } => self.give_back(node, messages),
                RowStep::CallTool { .. } | RowStep::StartTimer { .. } => {}
            }
        }
        let below = |index: &usize| *index != top && gone.get(*index) == Some(&true);
        for index in (0..gone.len()).filter(below) {
            self.end(graph, index);
        }
    }

    /// Returns the messages of a request to the conversation, for its transcript.
    fn give_back(&mut self, node: usize, messages: Vec<Message>) {
        if let Some(NodeState::Conversation(conversation) | NodeState::Ended(Some(conversation))) =
            self.nodes.get_mut(node).map(|node| &mut node.state)
        {
            conversation.restore_messages(messages);
        }
    }

    /// Whether the node exists.
    pub(super) fn has_node(&self, node: usize) -> bool {
        node < self.nodes.len()
    }

    /// Takes a step out of order.
    pub(super) fn take_step_where(&mut self, is_wanted: impl FnMut(&RowStep) -> bool) -> Option<RowStep> {
        let at = self.ready.iter().position(is_wanted)?;
        self.ready.remove(at)
    }
}

fn out_of_turns(graph: &AgentGraph, most: u32, conversation: &AgentConversation) -> RowError {
    let message = format!("no result after {} ({TURNS})", model_calls_text(most));
    RowError { raw_text: conversation.last_model_text(), ..RowError::new(RowErrorKind::TurnLimit, message) }
        .with_vocabulary(graph.vocabulary)
}
