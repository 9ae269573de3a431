//! Limits the work for one schema, so that no schema can take the time or the memory of the whole run.

use std::cell::Cell;
use std::fmt;

use serde_json::{Map, Value};

/// The maximum number of parts of a value.
pub(crate) const MOST_VALUES: u64 = 100_000;

/// The maximum text of a value, in bytes: that of its strings and of the names in it.
pub(crate) const MOST_TEXT: u64 = 1 << 20;

/// The maximum depth of a value.
pub(crate) const MOST_DEPTH: u32 = 48;

/// The maximum number of schema parts examined and merged, over all attempts.
const MOST_STEPS: u64 = 2_000_000;

/// The limit that a schema exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GenerationLimitExceeded {
    /// Too many values.
    Values,
    /// Too much text.
    Text,
    /// Values that are nested too deeply, or infinitely.
    Depth,
    /// Too many combinations of its parts.
    Combinations,
}

impl fmt::Display for GenerationLimitExceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Values => write!(out, "more than {MOST_VALUES} values in one answer"),
            Self::Text => write!(out, "more than {MOST_TEXT} bytes of text in one answer"),
            Self::Depth => write!(out, "values nested more than {MOST_DEPTH} deep"),
            Self::Combinations => {
                out.write_str("too many combinations of `allOf`, `anyOf`, `oneOf` and `$ref`")
            }
        }
    }
}

impl std::error::Error for GenerationLimitExceeded {}

/// Counts the work, and reports when it is too much.
#[derive(Debug, Default)]
pub(crate) struct GenerationBudget {
    values: Cell<u64>,
    text: Cell<u64>,
    steps: Cell<u64>,
    exceeded: Cell<Option<GenerationLimitExceeded>>,
}

impl GenerationBudget {
    /// Starts another attempt: values and text are counted anew, steps accumulate.
    pub(crate) fn begin_attempt(&self) {
        self.values.set(0);
        self.text.set(0);
    }

    pub(crate) fn exceeded(&self) -> Option<GenerationLimitExceeded> {
        self.exceeded.get()
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.exceeded.get().is_some()
    }

    pub(crate) fn mark_exceeded(&self, what: GenerationLimitExceeded) {
        self.exceeded.set(self.exceeded.get().or(Some(what)));
    }

    /// Counts this many values.
    pub(crate) fn count_values(&self, count: u64) {
        self.add(&self.values, count, (MOST_VALUES, GenerationLimitExceeded::Values));
    }

    /// Counts this many bytes of text.
    pub(crate) fn count_text(&self, bytes: usize) {
        self.add(&self.text, bytes as u64, (MOST_TEXT, GenerationLimitExceeded::Text));
    }

    /// Counts this many parts of a schema that are about to be copied.
    pub(crate) fn count_steps(&self, count: u64) {
        self.add(&self.steps, count, (MOST_STEPS, GenerationLimitExceeded::Combinations));
    }

    /// Counts a value that the schema contains verbatim.
    pub(crate) fn count_copied(&self, value: &Value) {
        let (parts, text) = value_size(value);
        self.count_values(parts);
        self.count_text(text);
    }

    /// The total of all counts.
    #[cfg(test)]
    pub(crate) fn total(&self) -> u64 {
        self.values.get().saturating_add(self.text.get()).saturating_add(self.steps.get())
    }

    fn add(&self, counted: &Cell<u64>, more: u64, (most, what): (u64, GenerationLimitExceeded)) {
        counted.set(counted.get().saturating_add(more));
        if counted.get() > most {
            self.mark_exceeded(what);
        }
    }
}

/// The number of parts of a schema, for [`GenerationBudget::count_steps`].
pub(crate) fn schema_parts(map: &Map<String, Value>) -> u64 {
    map.values().map(|value| value_size(value).0).sum::<u64>() + 1
}

/// The number of parts of a value, and the bytes of its texts and names.
pub(crate) fn value_size(value: &Value) -> (u64, usize) {
    let add = |(parts, text): (u64, usize), (more, other): (u64, usize)| (parts + more, text + other);
    match value {
        Value::String(text) => (1, text.len()),
        Value::Array(items) => items.iter().map(value_size).fold((1, 0), add),
        Value::Object(map) => {
            map.iter().map(|(name, value)| add((0, name.len()), value_size(value))).fold((1, 0), add)
        }
        _ => (1, 0),
    }
}
