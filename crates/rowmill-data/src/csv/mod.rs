//! Delimited text with a header: CSV, TSV and others.

mod delimiter;
mod header;
mod overlong;
mod records;
mod source;

pub use delimiter::FieldDelimiter;
pub(crate) use delimiter::{DelimiterChoice, overriding_delimiter};
pub(crate) use source::CsvRowSource;
