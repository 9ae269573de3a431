//! Values between commas, tabs or other characters, with a header.

mod delimiter;
mod header;
mod overlong;
mod records;
mod source;

pub use delimiter::FieldDelimiter;
pub(crate) use delimiter::{DelimiterChoice, deviating};
pub(crate) use source::CsvSource;
