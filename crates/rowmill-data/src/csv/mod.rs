//! Values between commas or tabs, with a header.

mod header;
mod records;
mod source;

pub(crate) use source::CsvSource;
