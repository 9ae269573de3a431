//! Which texts are cards, and where the fields of a card end and its body begins.

use std::path::Path;

use crate::mistake::Mistake;

/// How a card is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardForm {
    /// `.md` or `.markdown`: YAML between two lines of `---`, then the instruction.
    Markdown,
    /// `.yaml` or `.yml`: YAML alone.
    Yaml,
}

impl CardForm {
    /// The form that a file's name tells, if it tells one.
    ///
    /// ```
    /// # use rowmill_cards::CardForm;
    /// assert_eq!(CardForm::of("cards/worker.MD"), Some(CardForm::Markdown));
    /// assert_eq!(CardForm::of("cards/worker.toml"), None);
    /// ```
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let extension = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "md" | "markdown" => Some(Self::Markdown),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// Whether a file's name is that of a skill, which is no card.
#[must_use]
pub fn is_skill_manifest(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == "SKILL.md")
}

/// Whether a Markdown text begins with front matter. In a folder of cards, Markdown without it
/// is a page to be read by people.
#[must_use]
pub fn has_front_matter(text: &str) -> bool {
    let first = unmarked(text).lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| is_boundary(line) || line.trim_end() == "+++")
}

/// A Markdown card in its two parts.
#[derive(Debug)]
pub(crate) struct Split {
    /// The fields, in the lines where they were.
    pub(crate) yaml: String,
    /// What follows them.
    pub(crate) body: String,
    /// The line where the body begins.
    pub(crate) body_line: u64,
}

/// Splits a Markdown card.
pub(crate) fn split(text: &str) -> Result<Split, Mistake> {
    let mut lines = unmarked(text).lines().enumerate();
    let opening = lines.by_ref().find(|(_, line)| !line.trim().is_empty());
    let skipped = match opening {
        Some((index, line)) if is_boundary(line) => index,
        Some((index, line)) if line.trim_end() == "+++" => {
            return Err(Mistake::at(line_number(index), "front matter in TOML is not supported")
                .hint("write it as YAML between two lines of `---`"));
        }
        _ => {
            return Err(Mistake::whole("there is no front matter")
                .hint("start the card with its fields as YAML between two lines of `---`"));
        }
    };
    // Blank lines stand for what was before, so that the parser counts as a reader does.
    let mut yaml = "\n".repeat(skipped + 1);
    for (index, line) in lines.by_ref() {
        if is_boundary(line) {
            let body: Vec<_> = lines.map(|(_, line)| line).collect();
            return Ok(Split { yaml, body: body.join("\n"), body_line: line_number(index) + 1 });
        }
        yaml.push_str(line);
        yaml.push('\n');
    }
    Err(Mistake::at(line_number(skipped), "the front matter has no end")
        .hint("add a line of `---` after the fields"))
}

fn line_number(index: usize) -> u64 {
    index as u64 + 1
}

/// Three or more hyphens from the margin.
fn is_boundary(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
