//! A model chooses the agent that answers.

use rowmill_types::{Message, RowError, RowErrorKind};
use serde::Deserialize;

use super::{Workflow, ask_own, failed, find, have, named, names, read};
use crate::agent::answer_format::AnswerFormat;
use crate::agent::graph::AgentGraph;
use crate::agent::step::{AgentAnswer, NodeAction};

/// How often the model may choose: it is notified of a name that does not exist once.
const CHOICES: usize = 2;

pub(super) struct RouterWorkflow {
    agent_index: usize,
    agents: Vec<usize>,
    form: AnswerFormat,
    request: Vec<Message>,
    /// The agent that answers, once it is known.
    chosen: Option<usize>,
}

#[derive(Deserialize)]
struct RouterChoice {
    agent: String,
}

impl RouterWorkflow {
    pub(super) fn new(agent_index: usize, agents: &[usize], form: AnswerFormat) -> Self {
        Self { agent_index, agents: agents.to_vec(), form, request: Vec::new(), chosen: None }
    }

    fn send_to(&mut self, agent: usize) -> NodeAction {
        self.chosen = Some(agent);
        have(CHOICES, agent, self.form, std::mem::take(&mut self.request))
    }

    /// The model has chosen; `made` is the number of its earlier choices.
    fn chose(&mut self, graph: &AgentGraph, made: usize, answer: String) -> NodeAction {
        let choice: RouterChoice = match read(&answer) {
            Ok(choice) => choice,
            Err(error) => return failed(graph, self.agent_index, error),
        };
        if let Some(agent) = find(graph, &self.agents, &choice.agent) {
            return self.send_to(agent);
        }
        let names = names(graph, &self.agents);
        if made + 1 < CHOICES {
            let feedback = format!(
                "There is no agent `{}`. Choose again, and name one of these exactly: {names}.",
                choice.agent
            );
            let mut messages = self.request.clone();
            messages.extend([Message::assistant(answer), Message::user(feedback)]);
            return ask_own(made + 1, self.agent_index, AnswerFormat::Route, messages);
        }
        let message = format!("the model chose the agent `{}`; there are only {names}", choice.agent);
        let error =
            RowError { raw_text: Some(answer), ..RowError::new(RowErrorKind::StructuredOutput, message) };
        failed(graph, self.agent_index, error)
    }
}

impl Workflow for RouterWorkflow {
    fn begin(&mut self, _: &AgentGraph, request: Vec<Message>) -> NodeAction {
        self.request = request;
        match self.agents.as_slice() {
            &[only] => self.send_to(only),
            _ => ask_own(0, self.agent_index, AnswerFormat::Route, self.request.clone()),
        }
    }

    fn handle_agent_end(&mut self, graph: &AgentGraph, key: usize, answer: AgentAnswer) -> NodeAction {
        match (self.chosen, answer) {
            (Some(agent), answer) => NodeAction::Done(answer.map_err(|error| named(graph, agent, error))),
            (None, Ok(answer)) => self.chose(graph, key, answer),
            (None, Err(error)) => failed(graph, self.agent_index, error),
        }
    }
}
