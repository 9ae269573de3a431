//! Made-up answers that fit: values that satisfy a JSON Schema and short sentences, the same ones each time
//! for the same seed.
//!
//! Dry runs, demonstrations and the provider simulator use it, so an answer can be predicted from its prompt.

mod array;
mod merge;
mod number;
mod object;
mod pattern;
mod text;
mod value;
mod work;

#[cfg(test)]
mod tests;

pub use value::{seed_of, sentence_for, value_for};
pub use work::TooLarge;
