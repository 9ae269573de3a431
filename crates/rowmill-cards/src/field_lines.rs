//! The line numbers of a card's fields, for problems that are found after parsing.

use rowmill_types::Problem;

use crate::AgentCard;
use crate::card_fields::CardFields;
use crate::mistake::CardMistake;
use crate::placeholders::{InstructionPart, split_instruction};
use crate::yaml::{YamlContent, YamlNode};

/// Fields that name something outside the card. Other values are not kept: they may be secrets.
const NAMING: [&str; 9] = [
    "name",
    "model",
    "servers",
    "skills",
    "messages",
    "function_tools",
    "tool_hooks",
    "lifecycle_hooks",
    "cwd",
];

/// Mappings whose keys are names, and whose values may be secrets.
const KEYED: [&str; 2] = ["mcp_connect", "tool_policy"];

/// The lines of fields, of the names in them, and of placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldLines {
    named: Vec<(&'static str, String, u64)>,
    placeholders: Vec<(String, u64)>,
}

impl FieldLines {
    /// The lines of a card's fields.
    pub(crate) fn from_fields(fields: &CardFields) -> Self {
        let mut named = Vec::new();
        for entry in fields.entries() {
            if let Some(field) = NAMING.iter().find(|field| **field == entry.key) {
                named.push((*field, String::new(), entry.line));
                collect(&entry.node, field, &mut named);
            }
            if let Some(field) = KEYED.iter().find(|field| **field == entry.key) {
                named.push((*field, String::new(), entry.line));
                if let YamlContent::Mapping(keys) = &entry.node.content {
                    named.extend(keys.iter().map(|key| (*field, key.key.trim().to_owned(), key.line)));
                }
            }
        }
        Self { named, placeholders: Vec::new() }
    }

    /// Adds the placeholders of an instruction, which are searched for in the text of the card.
    pub(crate) fn add_placeholders(&mut self, instruction: &str, card: &str) {
        for part in split_instruction(instruction) {
            let InstructionPart::Placeholder { source, .. } = part else { continue };
            let line = card.lines().position(|line| line.contains(source)).map(|index| index as u64 + 1);
            self.placeholders.extend(line.map(|line| (source.to_owned(), line)));
        }
    }

    /// The line of a placeholder as written, or 0.
    pub(crate) fn placeholder_line(&self, source: &str) -> u64 {
        self.placeholders.iter().find(|(known, _)| known == source).map_or(0, |(_, line)| *line)
    }

    fn of_name(&self, field: &str, name: &str) -> u64 {
        let of_field = || self.named.iter().filter(|(known, ..)| *known == field);
        // A function is written after its file.
        let is_name = |known: &str| known == name || known.starts_with(&format!("{name}:"));
        let exact = of_field().find(|(_, known, _)| is_name(known));
        exact.or_else(|| of_field().next()).map_or(0, |(.., line)| *line)
    }
}

fn collect(node: &YamlNode, field: &'static str, named: &mut Vec<(&'static str, String, u64)>) {
    match &node.content {
        YamlContent::Text(text) => named.push((field, text.trim().to_owned(), node.line)),
        YamlContent::List(nodes) => nodes.iter().for_each(|node| collect(node, field, named)),
        YamlContent::Mapping(entries) => entries.iter().for_each(|entry| collect(&entry.node, field, named)),
        YamlContent::Null | YamlContent::Boolean(_) | YamlContent::Number(_) => {}
    }
}

impl AgentCard {
    /// A problem with a name in a field, reported with the card and the line. `name` is the value as
    /// written in the card; if no line has it, the line of the field is used.
    #[must_use]
    pub fn problem_at(&self, (field, name): (&str, &str), message: impl Into<String>) -> Problem {
        CardMistake::at(self.lines.of_name(field, name), message).into_problem(&self.source)
    }

    /// A problem with a placeholder of the instruction, reported with the card and the line.
    #[must_use]
    pub fn problem_at_placeholder(&self, placeholder: &str, message: impl Into<String>) -> Problem {
        CardMistake::at(self.lines.placeholder_line(placeholder), message).into_problem(&self.source)
    }
}
