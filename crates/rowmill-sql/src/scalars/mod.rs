//! Scalar functions, with DuckDB's semantics.

mod catalog;
mod conditional;
mod dates;
mod formats;
mod json;
mod lists;
mod moments;
mod numbers;
mod operators;
mod patterns;
mod plain;
mod regexes;
mod rounding;
mod texts;

pub(crate) use catalog::{FunctionCall, bind_function, names};
pub(crate) use conditional::case;
pub(crate) use dates::{interval_of, part_of};
pub(crate) use json::json_part;
pub(crate) use lists::{element, list_of, slice, struct_field};
pub(crate) use operators::{Arithmetic, arithmetic, concatenated, negated};
pub(crate) use patterns::{PatternCase, like};
pub(crate) use regexes::matches_wholly;
