//! Google `generateContent`.

mod read;
mod write;

pub(super) use self::read::{as_json_schema, model_and_method, read_google_request};
pub(super) use self::write::{error, render};
