//! Values of DuckDB's types: their representation, order, formatting, parsing and casts.

pub(crate) mod calendar;
pub(crate) mod cast;
pub(crate) mod cast_numbers;
pub(crate) mod common_type;
pub(crate) mod date_text;
pub(crate) mod datum;
pub(crate) mod decimal;
pub(crate) mod encoding;
pub(crate) mod extended;
pub(crate) mod interval;
pub(crate) mod json;
pub(crate) mod json_cast;
pub(crate) mod json_normal;
pub(crate) mod json_path;
pub(crate) mod json_read;
pub(crate) mod number_text;
pub(crate) mod output_json;
pub(crate) mod sql_type;
