//! File names that are derived from values.

use std::collections::HashMap;

use super::TableFormat;

/// Longer names are cut; file systems allow 255 bytes.
const MAX_BYTES: usize = 100;

/// The name for a missing value.
const NOTHING: &str = "_null";

/// Gives every value a unique file name.
///
/// A name depends only on the value, so it is the same in every run: the value itself if that is safe,
/// otherwise its safe characters with a digest of the whole value.
#[derive(Debug)]
pub(super) struct FileNames {
    format: TableFormat,
    /// The names in lower case, because some file systems are case-insensitive.
    taken: HashMap<String, String>,
}

impl FileNames {
    pub(super) fn new(format: TableFormat) -> Self {
        Self { format, taken: HashMap::new() }
    }

    /// The name for a new value; an empty text is a missing value.
    pub(super) fn name(&mut self, value: &str) -> String {
        let mut stem = stem(value);
        while self.taken.get(&stem.to_lowercase()).is_some_and(|other| other != value) {
            stem = with_digest(&stem, value);
        }
        self.taken.insert(stem.to_lowercase(), value.to_owned());
        format!("{stem}.{}", self.format.name())
    }
}

fn stem(value: &str) -> String {
    if value.is_empty() {
        return NOTHING.to_owned();
    }
    let safe = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' ' | '+' | '@');
    let mut stem: String = value.chars().map(|letter| if safe(letter) { letter } else { '_' }).collect();
    let mut end = stem.len().min(MAX_BYTES);
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    stem.truncate(end);
    // A dot would hide the file, a leading `_` is reserved for our names, and spaces at the ends are easily
    // lost.
    let kept = stem.trim_matches([' ', '.', '_']);
    match kept {
        _ if kept == value => stem,
        // With an empty stem the name would begin with `-`, which other programs take for a flag.
        "" => with_digest("value", value),
        _ => with_digest(kept, value),
    }
}

fn with_digest(stem: &str, value: &str) -> String {
    let digest = xxhash_rust::xxh3::xxh3_64(value.as_bytes());
    format!("{stem}-{:012x}", digest >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(values: &[&str]) -> Vec<String> {
        let mut names = FileNames::new(TableFormat::Csv);
        values.iter().map(|value| names.name(value)).collect()
    }

    #[test]
    fn safe_values_name_their_files_and_nothing_has_a_name_of_its_own() {
        assert_eq!(
            named(&["positive", "3.5", "überprüft", "a b", ""]),
            ["positive.csv", "3.5.csv", "überprüft.csv", "a b.csv", "_null.csv"]
        );
    }

    #[test]
    fn names_cannot_leave_the_folder_hide_or_grow_too_long() {
        let long = "ä".repeat(300);
        let values =
            ["../../etc/passwd", "/", "..", ".hidden", "a/b", "a\\b", "a\nb", "\0", "_null", " x ", &long];
        let names = named(&values);
        for (value, name) in values.iter().zip(&names) {
            assert!(!name.contains(['/', '\\', '\n', '\0']), "{name}");
            assert!(!name.starts_with(['.', '-']) && name != "_null.csv", "{name}");
            assert!(name.len() <= 128, "{value}: {name}");
        }
        let different: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(different.len(), values.len(), "{names:?}");
    }

    #[test]
    fn values_that_differ_only_in_case_get_different_files() {
        let names = named(&["A", "a", "A"]);
        assert_eq!((names[0].as_str(), names[2].as_str()), ("A.csv", "A.csv"));
        assert_ne!(names[1].to_lowercase(), "a.csv");
    }
}
