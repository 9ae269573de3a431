//! Counts the kinds of JSON values.

use serde::Serialize;

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JsonKind {
    /// A string.
    Text,
    /// A number without a fraction or an exponent.
    Integer,
    /// Any other number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An array.
    List,
    /// An object.
    Object,
    /// `null`.
    Null,
}

impl JsonKind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Text, Self::Integer, Self::Number, Self::Boolean, Self::List, Self::Object, Self::Null];

    /// The kind of a value, from its valid JSON text.
    #[must_use]
    pub fn of_json(json: &str) -> Self {
        match json.trim_ascii_start().as_bytes().first() {
            Some(b'"') => Self::Text,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'[') => Self::List,
            Some(b'{') => Self::Object,
            Some(b'n') | None => Self::Null,
            Some(_) if json.contains(['.', 'e', 'E']) => Self::Number,
            Some(_) => Self::Integer,
        }
    }

    /// The display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::List => "list",
            Self::Object => "object",
            Self::Null => "null",
        }
    }
}

/// How many values there were of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonKindCounts([u64; 7]);

impl JsonKindCounts {
    /// Counts a value.
    pub fn add(&mut self, kind: JsonKind) {
        if let Some(count) = self.0.get_mut(kind as usize) {
            *count += 1;
        }
    }

    /// How many there were of a kind.
    #[must_use]
    pub fn count_of(&self, kind: JsonKind) -> u64 {
        self.0.get(kind as usize).copied().unwrap_or_default()
    }

    /// The total number of values.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The kinds that occur, without null, the most frequent first.
    #[must_use]
    pub fn kinds(&self) -> Vec<JsonKind> {
        let mut found: Vec<JsonKind> = JsonKind::ALL
            .into_iter()
            .filter(|kind| *kind != JsonKind::Null && self.count_of(*kind) > 0)
            .collect();
        found.sort_by_key(|kind| std::cmp::Reverse(self.count_of(*kind)));
        found
    }
}

impl Serialize for JsonKindCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = JsonKind::ALL.iter().filter(|kind| self.count_of(**kind) > 0);
        serializer.collect_map(found.map(|kind| (kind.name(), self.count_of(*kind))))
    }
}
