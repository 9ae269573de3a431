//! One JSON object per line.

mod lines;
mod source;

pub(crate) use source::JsonlRowSource;
