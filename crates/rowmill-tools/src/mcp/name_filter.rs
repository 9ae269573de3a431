//! Selects which of a server's tools, resources and prompts are used.

/// A filter of names.
///
/// ```
/// # use rowmill_tools::NameFilter;
/// let filter = NameFilter::Only(vec!["read_*".to_owned(), "echo".to_owned()]);
/// assert!(filter.allows("read_file") && filter.allows("echo"));
/// assert!(!filter.allows("write_file"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameFilter {
    /// Admits all names.
    Everything,
    /// Admits no names.
    Nothing,
    /// Admits names that match one of these names or patterns: `*` matches any text, `?` one character,
    /// `[abc]` and `[a-z]` one of several, `[!…]` any other.
    Only(Vec<String>),
}

impl NameFilter {
    /// Whether a name is admitted.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Only(patterns) => patterns.iter().any(|pattern| matches(pattern, name)),
        }
    }
}

/// Whether a shell-style pattern matches a whole name.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut here) = (0, 0);
    // Where to continue if the text after the last star does not match.
    let mut retry: Option<(usize, usize)> = None;
    while here < name.len() {
        if pattern.get(at) == Some(&'*') {
            retry = Some((at + 1, here));
            at += 1;
        } else if let Some(next) = one(&pattern, at, &name, here) {
            at = next;
            here += 1;
        } else if let Some((after, from)) = retry {
            retry = Some((after, from + 1));
            at = after;
            here = from + 1;
        } else {
            return false;
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

/// Where the pattern continues if its next part, which stands for one character, matches.
fn one(pattern: &[char], at: usize, name: &[char], here: usize) -> Option<usize> {
    let (part, character) = (pattern.get(at)?, name.get(here)?);
    if *part == '['
        && let Some((fits, next)) = class(pattern, at, *character)
    {
        return fits.then_some(next);
    }
    (*part == '?' || part == character).then_some(at + 1)
}

/// Whether a bracketed class contains a character, and where the pattern continues after it. `None` if the
/// bracket is never closed: then it is a literal character.
fn class(pattern: &[char], at: usize, character: char) -> Option<(bool, usize)> {
    let negated = pattern.get(at + 1) == Some(&'!');
    let first = at + 1 + usize::from(negated);
    // A closing bracket in the first position belongs to the class.
    let end = (first + 1..pattern.len()).find(|&index| pattern.get(index) == Some(&']'))?;
    let members = pattern.get(first..end)?;
    let mut held = false;
    let mut index = 0;
    while let Some(low) = members.get(index) {
        match (members.get(index + 1), members.get(index + 2)) {
            (Some('-'), Some(high)) => {
                held |= (*low..=*high).contains(&character);
                index += 3;
            }
            _ => {
                held |= *low == character;
                index += 1;
            }
        }
    }
    Some((held != negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_those_of_a_shell() {
        let cases = [
            ("read_file", "read_file", true),
            ("read_file", "read_files", false),
            ("read_*", "read_", true),
            ("*_file", "read_text_file", true),
            ("*_file_*", "read_file", false),
            ("a*b*c", "aXbYbc", true),
            ("?dd", "add", true),
            ("?dd", "dd", false),
            ("[ab]dd", "add", true),
            ("[!ab]dd", "add", false),
            ("[0-9]x", "7x", true),
            ("[]]", "]", true),
            ("[ab", "[ab", true),
            ("*", "", true),
            ("", "", true),
            ("ä?", "äö", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }
}
