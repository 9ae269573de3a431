//! Restores a row state after a crash: earlier step events are applied again.

use rowmill_types::Message;

use super::graph::AgentGraph;
use super::journal::StepEvent;
use super::row_state::RowState;
use super::step::{ModelAnswer, RowStep, ToolResult};

impl RowState {
    /// Applies a step event from before a crash. Steps that it answers are not requested again. Events of a node after
    /// its time limit have no effect, as they had none then.
    ///
    /// # Errors
    ///
    /// The event does not fit the row state: the agent graph has changed.
    pub fn apply_event(&mut self, graph: &AgentGraph, step_event: StepEvent) -> Result<(), String> {
        let (StepEvent::ModelAnswered { node, .. }
        | StepEvent::ModelFailed { node, .. }
        | StepEvent::ToolStarted { node, .. }
        | StepEvent::ToolEnded { node, .. }
        | StepEvent::NodeTimedOut { node, .. }) = &step_event;
        if !self.has_node(*node) {
            return Err(format!("there is no node {node}"));
        }
        if self.node_has_ended(*node) {
            return Ok(());
        }
        match step_event {
            StepEvent::ModelAnswered { node, prompt, completion, note, .. } => {
                let mut messages = self.take_model_step(node)?;
                if let (Some(prompt), Some(last)) = (prompt, messages.last_mut()) {
                    last.text = prompt;
                }
                let note = note.filter(|_| graph.traced);
                self.handle_answer(graph, node, ModelAnswer { messages, completion, note });
            }
            StepEvent::ModelFailed { node, error, .. } => {
                let messages = self.take_model_step(node)?;
                self.handle_model_failure(graph, node, messages, error);
            }
            StepEvent::ToolEnded { node, index, output, note } => {
                self.take_tool_step(node, index)?;
                let note = note.filter(|_| graph.traced);
                self.handle_tool_output(graph, node, ToolResult { index, output, note });
            }
            StepEvent::NodeTimedOut { node, limit } => self.handle_node_timeout(graph, node, limit),
            StepEvent::ToolStarted { .. } => {}
        }
        Ok(())
    }

    fn take_model_step(&mut self, wanted: usize) -> Result<Vec<Message>, String> {
        let is_wanted = |step: &RowStep| matches!(step, RowStep::CallModel { node, .. } if *node == wanted);
        match self.take_step_where(is_wanted) {
            Some(RowStep::CallModel { messages, .. }) => Ok(messages),
            _ => Err(format!("no model call of node {wanted} was open")),
        }
    }

    fn take_tool_step(&mut self, wanted: usize, call: usize) -> Result<(), String> {
        let is_wanted = |step: &RowStep| matches!(step, RowStep::CallTool { node, index, .. } if (*node, *index) == (wanted, call));
        match self.take_step_where(is_wanted) {
            Some(_) => Ok(()),
            None => Err(format!("no tool call {call} of node {wanted} was open")),
        }
    }
}
