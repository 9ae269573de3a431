//! Counts in messages.

use rowmill_types::grouped;

/// `1 row`, `2 rows`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), verb(count, "", "s"))
}

/// The singular or plural form of a word for a count.
pub(crate) fn verb(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}
