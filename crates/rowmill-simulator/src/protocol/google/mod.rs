//! Google `generateContent`.

mod read;
mod write;

pub(super) use self::read::{as_json_schema, ask, model_and_method};
pub(super) use self::write::{error, render};
