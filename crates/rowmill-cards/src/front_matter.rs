//! Recognizes cards, and splits their fields from the body.

use std::path::Path;

use crate::mistake::CardMistake;

/// The format of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardFileFormat {
    /// `.md` or `.markdown`: YAML between two lines of `---`, then the instruction.
    Markdown,
    /// `.yaml` or `.yml`: YAML alone.
    Yaml,
}

impl CardFileFormat {
    /// The format that the extension of a file name indicates, if any.
    ///
    /// ```
    /// # use rowmill_cards::CardFileFormat;
    /// assert_eq!(CardFileFormat::from_file_name("cards/worker.MD"), Some(CardFileFormat::Markdown));
    /// assert_eq!(CardFileFormat::from_file_name("cards/worker.toml"), None);
    /// ```
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let extension = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "md" | "markdown" => Some(Self::Markdown),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// Whether a file's name is that of a skill, which is not a card.
#[must_use]
pub fn is_skill_manifest(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|name| name == "SKILL.md")
}

/// Whether a Markdown text starts with front matter. In a folder of cards, Markdown without it is
/// documentation.
#[must_use]
pub fn has_front_matter(text: &str) -> bool {
    let first = unmarked(text).lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| is_boundary(line) || line.trim_end() == "+++")
}

/// The two parts of a Markdown card.
#[derive(Debug)]
pub(crate) struct SplitCard {
    /// The fields, on the same lines as in the card.
    pub(crate) yaml: String,
    /// The text after the fields.
    pub(crate) body: String,
    /// The line where the body starts.
    pub(crate) body_line: u64,
}

/// Splits a Markdown card.
pub(crate) fn split_front_matter(text: &str) -> Result<SplitCard, CardMistake> {
    let mut lines = unmarked(text).lines().enumerate();
    let opening = lines.by_ref().find(|(_, line)| !line.trim().is_empty());
    let skipped = match opening {
        Some((index, line)) if is_boundary(line) => index,
        Some((index, line)) if line.trim_end() == "+++" => {
            return Err(CardMistake::at(line_number(index), "front matter in TOML is not supported")
                .hint("write it as YAML between two lines of `---`"));
        }
        _ => {
            return Err(CardMistake::in_card("there is no front matter")
                .hint("start the card with its fields as YAML between two lines of `---`"));
        }
    };
    // Blank lines replace the lines before, so that the parser reports the line numbers of the file.
    let mut yaml = "\n".repeat(skipped + 1);
    for (index, line) in lines.by_ref() {
        if is_boundary(line) {
            let body: Vec<_> = lines.map(|(_, line)| line).collect();
            return Ok(SplitCard { yaml, body: body.join("\n"), body_line: line_number(index) + 1 });
        }
        yaml.push_str(line);
        yaml.push('\n');
    }
    Err(CardMistake::at(line_number(skipped), "the front matter has no end")
        .hint("add a line of `---` after the fields"))
}

fn line_number(index: usize) -> u64 {
    index as u64 + 1
}

/// Whether a line consists of three or more hyphens without indentation.
fn is_boundary(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
