//! The instruction of a card: its source, its includes, and its variables.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use rowmill_core::variables::InstructionVariables;
use rowmill_types::Problem;
use rowmill_types::settings::AGENT_CARD;

use crate::AgentCard;
use crate::card_fields::CardFields;
use crate::field_lines::FieldLines;
use crate::mistake::CardMistake;
use crate::parse::CardOrigin;
use crate::placeholders::{InstructionPart, fill_placeholders, replace_placeholders, split_instruction};
use crate::unfilled_placeholders::{EMPTY_HERE, UnfilledPlaceholder, is_known_placeholder};

/// The placeholder for what the MCP servers say about themselves.
pub const SERVER_INSTRUCTIONS: &str = "{{serverInstructions}}";

/// The placeholder for the list of skills.
pub const AGENT_SKILLS: &str = "{{agentSkills}}";

/// A text that an instruction includes by a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionInclude {
    /// The placeholder as written.
    pub placeholder: String,
    /// The source of the text.
    pub from: IncludeSource,
}

/// The source of an included text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncludeSource {
    /// A file.
    File {
        /// Its path, relative to the card.
        path: PathBuf,
        /// Whether a missing file counts as empty.
        optional: bool,
    },
    /// An `http://`, `https://` or `hf://` address.
    Url(String),
}

impl IncludeSource {
    /// The source for the name in a placeholder; `None` if it is not an include.
    fn of(name: &str) -> Option<Self> {
        let file = |path: &str, optional| Self::File { path: PathBuf::from(path.trim()), optional };
        if let Some(path) = name.strip_prefix("file:") {
            Some(file(path, false))
        } else if let Some(path) = name.strip_prefix("file_silent:") {
            Some(file(path, true))
        } else {
            name.strip_prefix("url:").map(|url| Self::Url(url.trim().to_owned()))
        }
    }
}

/// Reads the instruction from the field or from the body.
pub(crate) fn read_instruction(
    fields: &mut CardFields,
    body: Option<(String, u64)>,
) -> Result<Option<String>, CardMistake> {
    let field = fields.take("instruction");
    let body = body.map(|(body, line)| of_body(&body, line)).transpose()?.flatten();
    match (field, body) {
        (Some(field), Some(_)) => Err(field.mistake("and the body are both given").hint("keep one of them")),
        (Some(field), None) => field.text().map(Some),
        (None, body) => Ok(body),
    }
}

fn of_body(body: &str, first_line: u64) -> Result<Option<String>, CardMistake> {
    let mut lines: Vec<&str> = body.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if matches!(line.trim(), "---USER" | "---ASSISTANT" | "---RESOURCE") {
            let message = format!("the body contains messages: `{}`", line.trim());
            return Err(CardMistake::at(first_line + index as u64, message)
                .hint("move them to a file and set its path in `messages`"));
        }
    }
    if let Some(first) = lines.iter().position(|line| !line.trim().is_empty())
        && lines.get(first).is_some_and(|line| line.trim() == "---SYSTEM")
    {
        lines.drain(..=first);
    }
    let text = lines.join("\n").trim().to_owned();
    Ok((!text.is_empty()).then_some(text))
}

/// Includes that the instruction must not have.
pub(crate) fn find_include_mistakes(
    instruction: &str,
    origin: &CardOrigin<'_>,
    lines: &FieldLines,
) -> Vec<CardMistake> {
    let mut mistakes = Vec::new();
    for part in split_instruction(instruction) {
        let InstructionPart::Placeholder { name, source } = part else { continue };
        let wrong =
            |what: &str| CardMistake::at(lines.placeholder_line(source), format!("{what}: `{source}`"));
        match IncludeSource::of(name) {
            Some(IncludeSource::File { .. }) if matches!(origin, CardOrigin::Remote) => {
                mistakes.push(wrong("a remote card may not include files").hint(format!(
                    "save the card to a file that you trust and pass its path to {AGENT_CARD}"
                )))
            }
            Some(IncludeSource::File { path, .. }) if is_absolute(&path) => mistakes.push(
                wrong("an included file must have a relative path")
                    .hint("write the path relative to the card's folder, or to the current one"),
            ),
            Some(IncludeSource::Url(url)) if !is_address(&url) => mistakes.push(
                wrong("an included URL is not supported")
                    .hint("URLs start with `https://`, `http://` or `hf://`"),
            ),
            _ => {}
        }
    }
    mistakes
}

fn is_absolute(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_absolute() || path.starts_with("~")
}

fn is_address(url: &str) -> bool {
    ["https://", "http://", "hf://"].iter().any(|scheme| url.starts_with(scheme))
}

impl AgentCard {
    /// The texts that the instruction includes, without repetitions.
    #[must_use]
    pub fn instruction_includes(&self) -> Vec<InstructionInclude> {
        let mut includes: Vec<InstructionInclude> = Vec::new();
        for part in split_instruction(self.instruction.as_deref().unwrap_or_default()) {
            if let InstructionPart::Placeholder { name, source } = part
                && let Some(from) = IncludeSource::of(name)
                && includes.iter().all(|earlier| earlier.placeholder != source)
            {
                includes.push(InstructionInclude { placeholder: source.to_owned(), from });
            }
        }
        includes
    }

    /// Replaces includes by their texts. `texts` holds pairs of a placeholder and its text.
    ///
    /// # Errors
    ///
    /// An included text includes another one.
    pub fn insert_includes(&mut self, texts: &[(String, String)]) -> Result<(), Problem> {
        let Some(instruction) = self.instruction.take() else { return Ok(()) };
        for (placeholder, text) in texts {
            for part in split_instruction(text) {
                if let InstructionPart::Placeholder { name, source } = part
                    && IncludeSource::of(name).is_some()
                {
                    let message = format!("the text of `{placeholder}` includes another: `{source}`");
                    return Err(CardMistake::at(self.lines.placeholder_line(placeholder), message)
                        .hint("include it in the card itself, or write `\\{{` for plain text")
                        .into_problem(&self.source));
                }
            }
        }
        let text_of = |source: &str| texts.iter().find(|(placeholder, _)| placeholder == source);
        let put = |_: &str, source: &str| -> Result<String, Problem> {
            Ok(text_of(source).map_or_else(|| source.to_owned(), |(_, text)| text.clone()))
        };
        self.instruction = Some(replace_placeholders(&instruction, put)?);
        Ok(())
    }

    /// Fills in the variables of the instruction; values in `given` override those of the card.
    ///
    /// [`SERVER_INSTRUCTIONS`] and [`AGENT_SKILLS`] stay, to be replaced by the caller who knows these
    /// texts. As soon as any variable has a name of the author's choice, a placeholder without a value
    /// is no longer treated as plain text.
    pub fn fill_variables(&mut self, given: &InstructionVariables) -> InstructionFillReport {
        let Some(instruction) = self.instruction.take() else { return InstructionFillReport::default() };
        let mut variables = self.variables.clone();
        for name in given.names() {
            variables.set(name.to_owned(), given.value(name).unwrap_or_default().to_owned());
        }
        let has_own = variables.names().any(|name| !is_known_placeholder(name));
        let mut result = InstructionFillReport::default();
        let mut empty = Vec::new();
        let put = |name: &str, source: &str| -> Result<String, Infallible> {
            if let Some(value) = variables.value(name) {
                result.used.push(name.to_owned());
                return Ok(value.to_owned());
            }
            Ok(match name {
                "serverInstructions" => SERVER_INSTRUCTIONS.to_owned(),
                "agentSkills" => AGENT_SKILLS.to_owned(),
                "agentName" => self.name.clone(),
                "agentType" => self.kind.card_type().name().to_owned(),
                _ if EMPTY_HERE.contains(&name) => {
                    empty.push(source.to_owned());
                    String::new()
                }
                _ => {
                    if is_known_placeholder(name) || has_own {
                        result.unfilled.push(UnfilledPlaceholder::new(name, source, &variables));
                    }
                    source.to_owned()
                }
            })
        };
        let Ok(text) = fill_placeholders(&instruction, put);
        self.instruction = Some(text);
        self.ignored.extend(empty);
        result
    }
}

/// The result of filling in the variables of an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstructionFillReport {
    /// The variables that the instruction uses.
    pub used: Vec<String>,
    /// Placeholders without a value.
    pub unfilled: Vec<UnfilledPlaceholder>,
}
