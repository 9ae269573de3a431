//! Restores a row state after a crash: earlier step events are applied again.

use rowmill_types::Message;

use super::cast::Cast;
use super::course::Course;
use super::journal::Happening;
use super::step::Step;

impl Course {
    /// Applies a step event from before a crash. Steps that it answers are not requested again. Events of a node after
    /// its time limit have no effect, as they had none then.
    ///
    /// # Errors
    ///
    /// The event does not fit the row state: the agent graph has changed.
    pub fn replay(&mut self, cast: &Cast, happening: Happening) -> Result<(), String> {
        let (Happening::Answered { node, .. }
        | Happening::Failed { node, .. }
        | Happening::ToolStarted { node, .. }
        | Happening::ToolEnded { node, .. }
        | Happening::Expired { node, .. }) = &happening;
        if !self.knows(*node) {
            return Err(format!("there is no node {node}"));
        }
        if self.has_ended(*node) {
            return Ok(());
        }
        match happening {
            Happening::Answered { node, prompt, completion, note, .. } => {
                let mut messages = self.take_model_step(node)?;
                if let (Some(prompt), Some(last)) = (prompt, messages.last_mut()) {
                    last.text = prompt;
                }
                self.answered(cast, node, messages, completion, note.filter(|_| cast.traced));
            }
            Happening::Failed { node, error, .. } => {
                let messages = self.take_model_step(node)?;
                self.failed(cast, node, messages, error);
            }
            Happening::ToolEnded { node, index, output, note } => {
                self.take_tool_step(node, index)?;
                self.tool_ended(cast, node, index, output, note.filter(|_| cast.traced));
            }
            Happening::Expired { node, limit } => self.expired(cast, node, limit),
            Happening::ToolStarted { .. } => {}
        }
        Ok(())
    }

    fn take_model_step(&mut self, wanted: usize) -> Result<Vec<Message>, String> {
        let is_wanted = |step: &Step| matches!(step, Step::CallModel { node, .. } if *node == wanted);
        match self.take_ready(is_wanted) {
            Some(Step::CallModel { messages, .. }) => Ok(messages),
            _ => Err(format!("no model call of node {wanted} was open")),
        }
    }

    fn take_tool_step(&mut self, wanted: usize, call: usize) -> Result<(), String> {
        let is_wanted = |step: &Step| matches!(step, Step::CallTool { node, index, .. } if (*node, *index) == (wanted, call));
        match self.take_ready(is_wanted) {
            Some(_) => Ok(()),
            None => Err(format!("no tool call {call} of node {wanted} was open")),
        }
    }
}
