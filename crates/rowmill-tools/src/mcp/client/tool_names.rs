//! Generates tool names that models accept.

use std::collections::HashSet;

use ring::digest::{SHA256, digest};

/// The maximum length of names at providers.
const LONGEST: usize = 64;

/// Assigns names that are valid and unique.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    taken: HashSet<String>,
}

impl ToolNames {
    /// Assigns the name of a server's tool.
    pub(super) fn unique_name(&mut self, server: &str, tool: &str) -> String {
        let name = legal(&format!("{server}__{tool}"));
        let mut unique = name.clone();
        let mut number = 2;
        while !self.taken.insert(unique.clone()) {
            let ending = format!("_{number}");
            let kept: String = name.chars().take(LONGEST - ending.len()).collect();
            unique = kept + &ending;
            number += 1;
        }
        unique
    }
}

/// The name with only letters, digits, `_` and `-`, not starting with a digit or a dash, and not too long. A
/// truncated name ends with a digest, so that long names stay distinct.
fn legal(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut text: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert(0, '_');
    }
    if text.len() <= LONGEST {
        return text;
    }
    let digest = digest(&SHA256, name.as_bytes());
    let ending: String = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let kept: String = text.chars().take(LONGEST - 1 - ending.len()).collect();
    format!("{kept}_{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_unique() {
        let mut names = ToolNames::default();
        assert_eq!(names.unique_name("files", "read_file"), "files__read_file");
        assert_eq!(names.unique_name("my files", "read.file"), "my_files__read_file");
        assert_eq!(names.unique_name("my.files", "read file"), "my_files__read_file_2");
        assert_eq!(names.unique_name("7", "x"), "_7__x");
        let long = "x".repeat(70);
        let (first, second) = (names.unique_name("s", &long), names.unique_name("s", &format!("{long}y")));
        assert_eq!((first.len(), second.len()), (64, 64));
        assert_ne!(first, second);
        let third = names.unique_name("s", &long);
        assert_eq!(third.len(), 64);
        assert!(third.ends_with("_2"), "{third}");
    }
}
