//! Made-up answers that fit: values that satisfy a JSON Schema and short sentences, the same ones each time
//! for the same seed.
//!
//! Dry runs, demonstrations and the provider simulator use it, so an answer can be predicted from its prompt.

mod array;
mod generation_budget;
mod merge;
mod number;
mod object;
mod pattern;
mod text;
mod value;

#[cfg(test)]
mod tests;

pub use generation_budget::GenerationLimitExceeded;
pub use value::{seed_from, simulated_sentence, simulated_value};
