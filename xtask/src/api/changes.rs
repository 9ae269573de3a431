//! Compares two API snapshots, and classifies the differences by their effect on users.

use std::collections::BTreeSet;
use std::fmt;

use super::lines::{MORE, NON_EXHAUSTIVE, REQUIRED};

/// The differences between a snapshot and the previous one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ApiChanges {
    /// Removed lines.
    pub removed: Vec<String>,
    /// Lines about the same item, before and after.
    pub changed: Vec<(String, String)>,
    /// New lines that affect users who implement a trait, match an enum or build a struct.
    pub demanding: Vec<String>,
    /// New lines that affect nobody.
    pub added: Vec<String>,
}

impl ApiChanges {
    /// Compares two snapshots.
    #[must_use]
    pub fn between<EarlierCalls: AsRef<str>, After: AsRef<str>>(
        before: &[EarlierCalls],
        after: &[After],
    ) -> Self {
        let before: BTreeSet<&str> = before.iter().map(AsRef::as_ref).collect();
        let after: BTreeSet<&str> = after.iter().map(AsRef::as_ref).collect();
        let mut new: Vec<&str> = after.difference(&before).copied().collect();
        let mut changes = Self::default();
        for gone in before.difference(&after) {
            let same = new.iter().position(|new| subject(new).is_some() && subject(new) == subject(gone));
            match same {
                Some(at) => changes.changed.push(((*gone).to_owned(), new.remove(at).to_owned())),
                None => changes.removed.push((*gone).to_owned()),
            }
        }
        for line in new {
            let list = if demands(line, &before) { &mut changes.demanding } else { &mut changes.added };
            list.push(line.to_owned());
        }
        changes
    }

    /// Whether nothing differs.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether users' code may no longer compile.
    #[must_use]
    pub fn is_breaking(&self) -> bool {
        !(self.removed.is_empty() && self.changed.is_empty() && self.demanding.is_empty())
    }
}

impl fmt::Display for ApiChanges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_breaking() {
            writeln!(out, "\nbreaks users:")?;
        }
        for line in &self.removed {
            writeln!(out, "  - {line}")?;
        }
        for (before, after) in &self.changed {
            writeln!(out, "  - {before}\n  + {after}")?;
        }
        for line in &self.demanding {
            writeln!(out, "  + {line}")?;
        }
        if !self.added.is_empty() {
            writeln!(out, "\nadded:")?;
        }
        for line in &self.added {
            writeln!(out, "  + {line}")?;
        }
        if self.is_breaking() {
            write!(
                out,
                "\nraise the version in `Cargo.toml` if this is meant, tell it in `CHANGELOG.md`, and "
            )?;
        } else {
            write!(out, "\nnothing breaks: ")?;
        }
        write!(out, "run `cargo xtask api` and commit what it writes")
    }
}

/// The path of a line's item, without arguments; `None` for an impl, which can only be added or removed.
fn subject(line: &str) -> Option<String> {
    if line.starts_with("impl") || line.starts_with("unsafe impl") {
        return None;
    }
    let path = line.split(' ').find(|word| word.contains("::") || word.starts_with("rowmill"))?;
    let at = line.find(path)?;
    let mut depth = 0_usize;
    let mut subject = String::new();
    for letter in line.get(at..)?.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            letter if letter.is_alphanumeric() || letter == '_' || letter == ':' => subject.push(letter),
            _ => break,
        }
    }
    let subject = subject.trim_end_matches(':');
    (!subject.is_empty()).then(|| subject.to_owned())
}

/// Whether a new line breaks existing code: a field that a literal lacks, a variant that a match lacks, an
/// item that an implementation lacks.
fn demands(line: &str, before: &BTreeSet<&str>) -> bool {
    if !line.starts_with(REQUIRED) && !is_field_or_variant(line) {
        return false;
    }
    let Some(path) = subject(line) else { return false };
    let Some((owner, _)) = path.rsplit_once("::") else { return false };
    let of_owner = |known: &&&str| subject(known).as_deref() == Some(owner);
    before
        .iter()
        .find(of_owner)
        .is_some_and(|known| !known.starts_with(NON_EXHAUSTIVE) && !known.ends_with(MORE))
}

/// These have no keyword between `pub` and their path.
fn is_field_or_variant(line: &str) -> bool {
    let line = line.strip_prefix(NON_EXHAUSTIVE).unwrap_or(line).trim_start();
    line.strip_prefix("pub ").and_then(|line| line.split(' ').next()).is_some_and(|word| word.contains("::"))
}
