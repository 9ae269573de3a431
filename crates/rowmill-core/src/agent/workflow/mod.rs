//! Workflows: members that have other members work.

use rowmill_types::Message;

use super::cast::{Cast, Member};
use super::course::{Answer, Move};
use super::form::Form;

/// What a workflow decides; it has no effects of its own.
pub(super) trait Workflow: Send {
    /// Begins with the request.
    fn begin(&mut self, cast: &Cast, request: Vec<Message>) -> Move;

    /// A member that was started has ended; `key` is what it was started with.
    fn ended(&mut self, cast: &Cast, key: usize, answer: Answer) -> Move;
}

/// The workflow of a member that is asked for an answer in `form`.
pub(super) fn of(member: usize, found: &Member, form: Form) -> Box<dyn Workflow> {
    let _ = (member, found, form);
    Box::new(Nothing)
}

struct Nothing;

impl Workflow for Nothing {
    fn begin(&mut self, _: &Cast, _: Vec<Message>) -> Move {
        Move::Done(Ok(String::new()))
    }

    fn ended(&mut self, _: &Cast, _: usize, answer: Answer) -> Move {
        Move::Done(answer)
    }
}
