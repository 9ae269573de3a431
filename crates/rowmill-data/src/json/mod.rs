//! One JSON array of objects.

mod array_scanner;
mod items;
mod source;

pub(crate) use source::JsonRowSource;
