//! One agent after the other.

use rowmill_types::Message;

use super::{Workflow, failed, have, text_of};
use crate::agent::cast::Cast;
use crate::agent::form::Form;
use crate::agent::step::{Answer, Move};

pub(super) struct Chain {
    sequence: Vec<usize>,
    cumulative: bool,
    form: Form,
    request: Vec<Message>,
    /// The answers so far: all of them, or only the last one if the others are not passed on.
    answers: Vec<String>,
    /// The number of agents that have answered.
    done: usize,
}

impl Chain {
    pub(super) fn new(sequence: &[usize], cumulative: bool, form: Form) -> Self {
        Self {
            sequence: sequence.to_vec(),
            cumulative,
            form,
            request: Vec::new(),
            answers: Vec::new(),
            done: 0,
        }
    }

    fn go_on(&mut self, cast: &Cast) -> Move {
        let Some(&member) = self.sequence.get(self.done) else {
            return Move::Done(Ok(self.result(cast)));
        };
        let is_last = self.done + 1 == self.sequence.len();
        let form = if is_last { self.form } else { Form::Text };
        let messages = self.messages();
        have(self.done, member, form, messages)
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

    fn result(&mut self, cast: &Cast) -> String {
        if !self.cumulative || self.form != Form::Text {
            return self.answers.pop().unwrap_or_default();
        }
        let request = match text_of(&self.request) {
            "" => "<no response>",
            text => text,
        };
        let mut result = format!("<fastagent:request>{request}</fastagent:request>");
        for (&member, answer) in self.sequence.iter().zip(&self.answers) {
            let name = cast.name(member);
            result.push_str(&format!("\n\n<fastagent:response agent='{name}'>{answer}</fastagent:response>"));
        }
        result
    }
}

impl Workflow for Chain {
    fn begin(&mut self, cast: &Cast, request: Vec<Message>) -> Move {
        self.request = request;
        self.go_on(cast)
    }

    fn ended(&mut self, cast: &Cast, key: usize, answer: Answer) -> Move {
        match answer {
            Ok(answer) => {
                self.answers.push(answer);
                self.done += 1;
                self.go_on(cast)
            }
            Err(error) => failed(cast, self.sequence.get(key).copied().unwrap_or_default(), error),
        }
    }
}
