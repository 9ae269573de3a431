//! One JSON array of objects.

mod borders;
mod items;
mod source;

pub(crate) use source::JsonSource;
