//! Scalar functions, with DuckDB's semantics.

mod catalog;
mod conditional;
mod date_parts;
mod dates;
mod fixed_types;
mod formats;
mod json;
mod lists;
mod numbers;
mod operators;
mod patterns;
mod regexes;
mod rounding;
mod text_parts;
mod texts;

pub(crate) use catalog::{FunctionCall, bind_function, function_names};
pub(crate) use conditional::bind_case;
pub(crate) use dates::{bind_extract, interval_from_unit};
pub(crate) use json::bind_json_path;
pub(crate) use lists::{bind_element, bind_list, bind_slice, bind_struct_field};
pub(crate) use operators::{ArithmeticOperator, bind_arithmetic, bind_concatenation, bind_negation};
pub(crate) use patterns::{PatternCase, bind_like};
pub(crate) use regexes::bind_full_match;
