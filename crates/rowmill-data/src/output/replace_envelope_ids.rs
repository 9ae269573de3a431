//! Replaces the ids in the envelopes of an output.

use std::io::{BufWriter, Write};
use std::path::Path;

use rowmill_types::{Problem, RowId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::claim::{create_replacement, write_problem};
use super::lines::{OutputLine, OutputLines};
use super::link_target;
use super::settle::finish_replacement;

/// Replaces the id of every envelope of a settled output by the one that `id_of` returns for its row number;
/// everything else stays the same, byte for byte. `id_of` is called in the order of the file.
///
/// The new file is complete on disk before it replaces the old one.
///
/// # Errors
///
/// A file cannot be read or written, or `id_of` fails; the old file is then unchanged.
pub fn replace_envelope_ids(
    path: &Path,
    mut id_of: impl FnMut(u64) -> Result<RowId, Problem>,
) -> Result<(), Problem> {
    let path = &link_target(path);
    let (beside, file) = create_replacement(path)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let mut lines = OutputLines::open(path, 0..u64::MAX, 1 << 18)?;
    let mut line = Vec::new();
    while let OutputLine::Envelope(head) = lines.next()? {
        line.clear();
        write_with_id(&lines.bytes, &id_of(head.number)?, &mut line)
            .map_err(|error| lines.unusable(&error))?;
        out.write_all(&line).map_err(|error| write_problem(&beside, &error))?;
    }
    finish_replacement(out, &beside, path)
}

#[derive(Deserialize)]
struct EnvelopeWithId<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
}

/// Appends an envelope with a new id.
fn write_with_id(envelope: &[u8], id: &RowId, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let old = serde_json::from_slice::<EnvelopeWithId<'_>>(envelope)?.id.get();
    // The value is a slice of the envelope, so its address gives its offset.
    let start = old.as_ptr().addr() - envelope.as_ptr().addr();
    let (before, rest) = envelope.split_at(start);
    out.extend_from_slice(before);
    id.write_json(out);
    out.extend_from_slice(rest.get(old.len()..).unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_id_changes_wherever_it_stands() {
        for (before, id, after) in [
            (
                r#"{"id":12,"row_number":12,"ok":true,"result":{"id":12}}"#,
                RowId::Text("a \"b\"".into()),
                r#"{"id":"a \"b\"","row_number":12,"ok":true,"result":{"id":12}}"#,
            ),
            (
                r#" { "row_number": 3, "id" : "x\"y" , "ok": true}"#,
                RowId::Number(3),
                r#" { "row_number": 3, "id" : 3 , "ok": true}"#,
            ),
        ] {
            let mut line = Vec::new();
            write_with_id(before.as_bytes(), &id, &mut line).unwrap();
            assert_eq!(String::from_utf8(line).unwrap(), after);
        }
    }

    #[test]
    fn a_failure_on_the_way_leaves_the_output_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("out.jsonl");
        let text = "{\"id\":1,\"row_number\":1,\"ok\":true}\n{\"id\":2,\"row_number\":2,\"ok\":true}\n";
        fs::write(&path, text).unwrap();
        let failing = |number| match number {
            1 => Ok(RowId::Text("a".into())),
            _ => Err(Problem::new(rowmill_types::ProblemCode::Internal, "the input is gone")),
        };
        assert_eq!(replace_envelope_ids(&path, failing).unwrap_err().message, "the input is gone");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        replace_envelope_ids(&path, |number| Ok(RowId::Text(format!("r{number}").into()))).unwrap();
        let expected = text.replace("\"id\":1", "\"id\":\"r1\"").replace("\"id\":2", "\"id\":\"r2\"");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "no litter");
    }
}
