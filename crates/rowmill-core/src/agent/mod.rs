//! Agents: how a row is worked on in several turns, as a pure state machine.
//!
//! A [`Cast`] defines who works on every row: agents with tools, and workflows of agents. A [`Course`] is the state of
//! one row in its agent graph. It requests [`Step`]s (call a model, call a tool), is notified of their results, and
//! ends with an outcome. It has no clock and no network, and the only order of arrival that it knows is the order of
//! the notifications.
//!
//! Each notification is a [`Happening`]. The same step events in the same order lead to the same row state, so a list
//! of them is all that must be kept to continue after a crash.

mod cast;
mod conversation;
mod course;
mod form;
mod journal;
mod replay;
mod step;
mod transcript;
mod voices;
mod workflow;

pub use cast::{Agent, Cast, Child, Kind, Matching, Member, PlanType, Rating, Route, Tool, Voice};
pub use course::Course;
pub use form::Form;
pub use journal::Happening;
pub use step::{Answer, Step};
pub use transcript::{Caller, Conversation as ToldConversation, Shortfall, ToolNote, Transcript, TurnNote};
pub use workflow::instruction;
