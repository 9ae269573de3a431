//! Agents: how a row is worked on in several turns, as a pure state machine.
//!
//! A [`Cast`] says who works on every row: agents with tools, and workflows of agents. A
//! [`Course`] is the way of one row through its agent graph. It asks for [`Step`]s (call a model, call
//! a tool), is told its result, and has an outcome in the end. It knows no clock, no
//! network and no order of arrival but the one in which it is told.
//!
//! What is told to a row state is a [`Happening`]. The same step events in the same order lead to
//! the same row state, so a list of them is all that has to be kept to continue after a crash.

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
