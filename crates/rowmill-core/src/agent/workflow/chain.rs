//! One agent after the other.

use rowmill_types::Message;

use super::{Workflow, failed, have, text_of};
use crate::agent::answer_format::AnswerFormat;
use crate::agent::graph::AgentGraph;
use crate::agent::step::{AgentAnswer, NodeAction};

pub(super) struct ChainWorkflow {
    sequence: Vec<usize>,
    cumulative: bool,
    form: AnswerFormat,
    request: Vec<Message>,
    /// The answers so far: all of them, or only the last one if the others are not passed on.
    answers: Vec<String>,
    /// The number of agents that have answered.
    done: usize,
}

impl ChainWorkflow {
    pub(super) fn new(sequence: &[usize], cumulative: bool, form: AnswerFormat) -> Self {
        Self {
            sequence: sequence.to_vec(),
            cumulative,
            form,
            request: Vec::new(),
            answers: Vec::new(),
            done: 0,
        }
    }

    fn go_on(&mut self, graph: &AgentGraph) -> NodeAction {
        let Some(&agent_index) = self.sequence.get(self.done) else {
            return NodeAction::Done(Ok(self.result(graph)));
        };
        let is_last = self.done + 1 == self.sequence.len();
        let form = if is_last { self.form } else { AnswerFormat::Text };
        let messages = self.messages();
        have(self.done, agent_index, form, messages)
    }

    /// The request to the next agent.
    fn messages(&mut self) -> Vec<Message> {
        if self.cumulative {
            let answers = self.answers.iter().map(Message::user);
            return self.request.iter().cloned().chain(answers).collect();
        }
        match self.answers.pop() {
            Some(answer) => vec![Message::user(answer)],
            None => std::mem::take(&mut self.request),
        }
    }

    fn result(&mut self, graph: &AgentGraph) -> String {
        if !self.cumulative || self.form != AnswerFormat::Text {
            return self.answers.pop().unwrap_or_default();
        }
        let request = match text_of(&self.request) {
            "" => "<no response>",
            text => text,
        };
        let mut result = format!("<fastagent:request>{request}</fastagent:request>");
        for (&agent_index, answer) in self.sequence.iter().zip(&self.answers) {
            let name = graph.agent_name(agent_index);
            result.push_str(&format!("\n\n<fastagent:response agent='{name}'>{answer}</fastagent:response>"));
        }
        result
    }
}

impl Workflow for ChainWorkflow {
    fn begin(&mut self, graph: &AgentGraph, request: Vec<Message>) -> NodeAction {
        self.request = request;
        self.go_on(graph)
    }

    fn handle_agent_end(&mut self, graph: &AgentGraph, key: usize, answer: AgentAnswer) -> NodeAction {
        match answer {
            Ok(answer) => {
                self.answers.push(answer);
                self.done += 1;
                self.go_on(graph)
            }
            Err(error) => failed(graph, self.sequence.get(key).copied().unwrap_or_default(), error),
        }
    }
}
