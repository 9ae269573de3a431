//! A model chooses the agent that answers.

use rowmill_types::{ErrorKind, Message, RowError};
use serde::Deserialize;

use super::{Workflow, ask_own, failed, find, have, named, names, read};
use crate::agent::cast::Cast;
use crate::agent::form::Form;
use crate::agent::step::{Answer, Move};

/// How often the model may choose: it is notified of a name that does not exist once.
const CHOICES: usize = 2;

pub(super) struct Router {
    member: usize,
    agents: Vec<usize>,
    form: Form,
    request: Vec<Message>,
    /// The agent that answers, once it is known.
    chosen: Option<usize>,
}

#[derive(Deserialize)]
struct Choice {
    agent: String,
}

impl Router {
    pub(super) fn new(member: usize, agents: &[usize], form: Form) -> Self {
        Self { member, agents: agents.to_vec(), form, request: Vec::new(), chosen: None }
    }

    fn send_to(&mut self, agent: usize) -> Move {
        self.chosen = Some(agent);
        have(CHOICES, agent, self.form, std::mem::take(&mut self.request))
    }

    /// The model has chosen; `made` is the number of its earlier choices.
    fn chose(&mut self, cast: &Cast, made: usize, answer: String) -> Move {
        let choice: Choice = match read(&answer) {
            Ok(choice) => choice,
            Err(error) => return failed(cast, self.member, error),
        };
        if let Some(agent) = find(cast, &self.agents, &choice.agent) {
            return self.send_to(agent);
        }
        let names = names(cast, &self.agents);
        if made + 1 < CHOICES {
            let feedback = format!(
                "There is no agent `{}`. Choose again, and name one of these exactly: {names}.",
                choice.agent
            );
            let mut messages = self.request.clone();
            messages.extend([Message::assistant(answer), Message::user(feedback)]);
            return ask_own(made + 1, self.member, Form::Route, messages);
        }
        let message = format!("the model chose the agent `{}`; there are only {names}", choice.agent);
        let error =
            RowError { raw_text: Some(answer), ..RowError::new(ErrorKind::StructuredOutput, message) };
        failed(cast, self.member, error)
    }
}

impl Workflow for Router {
    fn begin(&mut self, _: &Cast, request: Vec<Message>) -> Move {
        self.request = request;
        match self.agents.as_slice() {
            &[only] => self.send_to(only),
            _ => ask_own(0, self.member, Form::Route, self.request.clone()),
        }
    }

    fn ended(&mut self, cast: &Cast, key: usize, answer: Answer) -> Move {
        match (self.chosen, answer) {
            (Some(agent), answer) => Move::Done(answer.map_err(|error| named(cast, agent, error))),
            (None, Ok(answer)) => self.chose(cast, key, answer),
            (None, Err(error)) => failed(cast, self.member, error),
        }
    }
}
