//! What a store of answers has, and what is removed from it.

use std::time::Duration;

use rowmill_types::TokenUsage;

/// The rules for removal; an answer that matches any of them is removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneSpec {
    /// Answers that were neither given nor found for this long.
    pub older_than: Option<Duration>,
    /// The least recently used answers, until the file is no larger than this.
    pub max_bytes: Option<u64>,
    /// Every answer.
    pub all: bool,
}

/// The result of a removal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The number of answers.
    pub entries: u64,
    /// The bytes of their texts, keys and model names.
    pub bytes: u64,
    /// Whether the file was made smaller, too. That is impossible while another process writes to it or if the disk has
    /// no room for a copy; the freed space is then used for new answers.
    pub compacted: bool,
}

/// The content of a store of answers, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerStoreStats {
    /// The number of answers.
    pub entries: u64,
    /// The bytes of their texts, keys and model names.
    pub bytes: u64,
    /// The size of the file.
    pub file_bytes: u64,
    /// When the oldest answer was given, in seconds since 1970.
    pub oldest: Option<u64>,
    /// When the newest answer was given, in seconds since 1970.
    pub newest: Option<u64>,
    /// How often these answers were found.
    pub hits: u64,
    /// The usage of the answers when they were paid for: finding each of them once saves that much.
    pub kept: TokenUsage,
    /// The usage that the hits so far have saved.
    pub saved: TokenUsage,
}
