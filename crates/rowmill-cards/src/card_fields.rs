//! A mapping with a fixed set of keys.

use crate::field::CardField;
use crate::mistake::{CardMistake, suggestion};
use crate::yaml::{YamlContent, YamlEntry};

/// The fields of a card, or of a mapping in it. Parsing continues after a mistake, so that all mistakes
/// are reported together.
#[derive(Debug)]
pub(crate) struct CardFields {
    prefix: String,
    line: u64,
    entries: Vec<YamlEntry>,
    mistakes: Vec<CardMistake>,
}

impl CardFields {
    /// The fields of a whole card.
    pub(crate) fn of_card(line: u64, entries: Vec<YamlEntry>) -> Self {
        Self { prefix: String::new(), line, entries, mistakes: Vec::new() }
    }

    /// The fields of a mapping in a card; a name that is not in `known` is a mistake.
    pub(crate) fn from_field(field: CardField, known: &[&str]) -> Result<Self, CardMistake> {
        let (prefix, line) = (format!("{}.", field.path), field.line);
        let mut fields = Self { prefix, line, entries: field.mapping()?, mistakes: Vec::new() };
        let unknown = fields.entries.iter().filter(|entry| !known.contains(&entry.key.as_str()));
        let hint = |entry: &YamlEntry| suggestion(&entry.key, known.iter().copied(), "fields here");
        fields.mistakes = unknown.map(|entry| fields.unknown_field(entry).hint(hint(entry))).collect();
        Ok(fields)
    }

    /// Records mistakes that were found elsewhere.
    pub(crate) fn add_mistakes(&mut self, mistakes: impl Into<Vec<CardMistake>>) {
        self.mistakes.extend(mistakes.into());
    }

    /// Returns the value, or records the mistakes and returns the default.
    pub(crate) fn value_or_note<T: Default>(&mut self, read: Result<T, impl Into<Vec<CardMistake>>>) -> T {
        read.unwrap_or_else(|mistakes| {
            self.add_mistakes(mistakes);
            T::default()
        })
    }

    /// Returns the parsed value if no field had a mistake.
    pub(crate) fn finish<T>(self, read: T) -> Result<T, Vec<CardMistake>> {
        if self.mistakes.is_empty() { Ok(read) } else { Err(self.mistakes) }
    }

    /// The mistake for an unknown field.
    pub(crate) fn unknown_field(&self, entry: &YamlEntry) -> CardMistake {
        CardMistake::at(entry.line, format!("unknown field `{}{}`", self.prefix, entry.key))
    }

    pub(crate) fn entries(&self) -> &[YamlEntry] {
        &self.entries
    }

    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Removes and returns a field. A field without a value counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<CardField> {
        let index = self.entries.iter().position(|entry| entry.key == name)?;
        let entry = self.entries.remove(index);
        let present = entry.node.content != YamlContent::Null;
        present.then(|| CardField::new(format!("{}{name}", self.prefix), entry.node))
    }

    /// Parses a field, if it is there. A field that cannot be parsed counts as absent from then on.
    pub(crate) fn read<T, E: Into<Vec<CardMistake>>>(
        &mut self,
        name: &str,
        read: impl FnOnce(CardField) -> Result<T, E>,
    ) -> Option<T> {
        let field = self.take(name)?;
        self.value_or_note(read(field).map(Some))
    }

    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.read(name, CardField::text)
    }

    pub(crate) fn flag(&mut self, name: &str) -> bool {
        self.read(name, CardField::boolean).unwrap_or(false)
    }
}

/// Parses all values of a list; returns them, or all mistakes.
pub(crate) fn collect_all<T, E: Into<Vec<CardMistake>>>(
    values: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, Vec<CardMistake>> {
    let (mut read, mut mistakes) = (Vec::new(), Vec::new());
    for value in values {
        match value {
            Ok(value) => read.push(value),
            Err(wrong) => mistakes.extend(wrong.into()),
        }
    }
    if mistakes.is_empty() { Ok(read) } else { Err(mistakes) }
}
