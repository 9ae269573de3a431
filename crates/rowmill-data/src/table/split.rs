//! Splits the envelopes of a run by the values of a field.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rowmill_core::redact::Redactor;
use rowmill_types::{Problem, ProblemCode};

use super::TableFormat;
use super::cells::{EnvelopeParts, plain_text, value_at_path};
use super::names::FileNames;

/// More values are considered a mistake: each would become a file.
const MAX_PARTS: usize = 10_000;

/// Envelopes are buffered up to this many bytes; then each part is appended to its file, one after the other,
/// so that only one file is open.
const PENDING_BYTES: usize = 16 << 20;

/// Envelopes that are split by the values of a field into files of a folder.
#[derive(Debug)]
pub(super) struct SplitEnvelopes {
    folder: PathBuf,
    field: String,
    names: FileNames,
    redactor: Redactor,
    places: HashMap<String, usize>,
    list: Vec<SplitPart>,
    pending: usize,
}

/// The envelopes with one value.
#[derive(Debug)]
pub(super) struct SplitPart {
    /// The name of its table.
    pub(super) name: String,
    /// The file that holds its envelopes.
    pub(super) envelopes: PathBuf,
    pending: Vec<u8>,
}

impl SplitEnvelopes {
    pub(super) fn new(folder: &Path, field: &str, format: TableFormat, redactor: Redactor) -> Self {
        Self {
            folder: folder.to_owned(),
            field: field.to_owned(),
            names: FileNames::new(format),
            redactor,
            places: HashMap::new(),
            list: Vec::new(),
            pending: 0,
        }
    }

    /// Adds an envelope.
    pub(super) fn push(&mut self, envelope: &EnvelopeParts<'_>, line: &[u8]) -> Result<(), Problem> {
        let value = plain_text(value_of(envelope, &self.field).unwrap_or("null"));
        // Values that differ only in secrets share a file: its name must not reveal which secret it was.
        let value = self.redactor.redact(&value);
        let place = match self.places.get(value.as_ref()) {
            Some(place) => *place,
            None => self.begin(&value)?,
        };
        if let Some(part) = self.list.get_mut(place) {
            part.pending.extend_from_slice(line.trim_ascii());
            part.pending.push(b'\n');
        }
        self.pending += line.len();
        if self.pending > PENDING_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes buffered envelopes and returns the parts, in the order of their first rows.
    pub(super) fn finish(mut self) -> Result<Vec<SplitPart>, Problem> {
        self.flush()?;
        Ok(self.list)
    }

    fn begin(&mut self, value: &str) -> Result<usize, Problem> {
        if self.list.len() == MAX_PARTS {
            let message =
                format!("`{}` has more than {MAX_PARTS} values, and each would become a file", self.field);
            return Err(Problem::new(ProblemCode::OutputPath, message).hint(
                "split by a field with fewer values; `rowmill export` can do this without another run",
            ));
        }
        let envelopes = self.folder.join(format!("{}.envelopes", self.list.len()));
        self.places.insert(value.to_owned(), self.list.len());
        self.list.push(SplitPart { name: self.names.name(value), envelopes, pending: Vec::new() });
        Ok(self.list.len() - 1)
    }

    fn flush(&mut self) -> Result<(), Problem> {
        for part in &mut self.list {
            let path = &part.envelopes;
            part_file(path, &part.pending).map_err(|error| crate::output::write_problem(path, &error))?;
            part.pending = Vec::new();
        }
        self.pending = 0;
        Ok(())
    }
}

fn part_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    OpenOptions::new().append(true).create(true).open(path)?.write_all(bytes)
}

/// The value that `field` names: with the prefix `result.`, `input.` or `error.` in that part; otherwise in
/// the result, then in the input, then in the envelope itself.
fn value_of<'a>(envelope: &EnvelopeParts<'a>, field: &str) -> Option<&'a str> {
    let parts = [("result", envelope.result), ("input", envelope.input), ("error", envelope.error)];
    for (name, part) in parts {
        if let Some(path) = field.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
            return value_at_path(part?, path);
        }
    }
    let found =
        [envelope.result, envelope.input].into_iter().flatten().find_map(|part| value_at_path(part, field));
    found.or_else(|| match field {
        "id" => Some(envelope.id),
        "row_number" => Some(envelope.number),
        "ok" => Some(envelope.ok_text()),
        // A result that is not an object.
        "result" => envelope.result,
        "reused" => envelope.reused,
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_looked_for_where_it_says_or_in_result_input_and_envelope() {
        let line = br#"{"id":7,"row_number":1,"ok":true,"result":{"label":"r","a":{"b":"deep"},"x.y":1},"error":null,"input":{"label":"i","lang":"de"}}"#;
        let envelope = EnvelopeParts::parse(line).unwrap();
        for (field, expected) in [
            ("label", Some("\"r\"")),
            ("result.label", Some("\"r\"")),
            ("input.label", Some("\"i\"")),
            ("lang", Some("\"de\"")),
            ("result.lang", None),
            ("a.b", Some("\"deep\"")),
            ("result.a.b", Some("\"deep\"")),
            ("x.y", Some("1")),
            ("id", Some("7")),
            ("ok", Some("true")),
            ("error.type", None),
            ("other", None),
        ] {
            assert_eq!(value_of(&envelope, field), expected, "{field}");
        }
    }

    #[test]
    fn too_many_values_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let mut parts = SplitEnvelopes::new(home.path(), "id", TableFormat::Csv, Redactor::default());
        let mut push = |id: usize| {
            let line = format!(r#"{{"id":{id},"row_number":1,"ok":true,"result":null,"error":null}}"#);
            parts.push(&EnvelopeParts::parse(line.as_bytes()).unwrap(), line.as_bytes())
        };
        (0..MAX_PARTS).for_each(|id| push(id).unwrap());
        push(0).unwrap();
        let problem = push(MAX_PARTS).unwrap_err();
        assert_eq!(problem.message, "`id` has more than 10000 values, and each would become a file");
    }
}
