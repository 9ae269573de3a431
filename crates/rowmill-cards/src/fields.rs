//! A mapping whose keys are known.

use crate::field::Field;
use crate::mistake::{Mistake, suggestion};
use crate::yaml::{Content, Entry};

/// The fields of a card, or of a mapping inside of it.
#[derive(Debug)]
pub(crate) struct Fields {
    prefix: String,
    line: u64,
    entries: Vec<Entry>,
}

impl Fields {
    /// The fields of a whole card.
    pub(crate) fn of_card(line: u64, entries: Vec<Entry>) -> Self {
        Self { prefix: String::new(), line, entries }
    }

    /// A mapping inside of a card; a name that is not `known` is a mistake.
    pub(crate) fn of(field: Field, known: &[&str]) -> Result<Self, Mistake> {
        let (prefix, line) = (format!("{}.", field.path), field.line);
        let fields = Self { prefix, line, entries: field.mapping()? };
        for entry in &fields.entries {
            if !known.contains(&entry.key.as_str()) {
                return Err(fields.unknown(entry).hint(suggestion(
                    &entry.key,
                    known.iter().copied(),
                    "fields here",
                )));
            }
        }
        Ok(fields)
    }

    /// Says that a field is not known.
    pub(crate) fn unknown(&self, entry: &Entry) -> Mistake {
        Mistake::at(entry.line, format!("unknown field `{}{}`", self.prefix, entry.key))
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Takes a field out. One without a value counts as absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Field> {
        let index = self.entries.iter().position(|entry| entry.key == name)?;
        let entry = self.entries.remove(index);
        let present = entry.node.content != Content::Null;
        present.then(|| Field::new(format!("{}{name}", self.prefix), entry.node))
    }

    /// Reads a field, if it is there.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Field) -> Result<T, Mistake>,
    ) -> Result<Option<T>, Mistake> {
        self.take(name).map(read).transpose()
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Mistake> {
        self.read(name, Field::text)
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Mistake> {
        Ok(self.read(name, Field::boolean)?.unwrap_or(false))
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, Mistake> {
        Ok(self.read(name, Field::texts)?.unwrap_or_default())
    }
}
