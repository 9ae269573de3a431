//! Counts in messages.

use rowmill_types::group_digits;

/// `1 row`, `2 rows`.
pub(crate) fn count_phrase(count: u64, what: &str) -> String {
    format!("{} {what}{}", group_digits(count), verb_form(count, "", "s"))
}

/// The singular or plural form of a word for a count.
pub(crate) fn verb_form(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}
