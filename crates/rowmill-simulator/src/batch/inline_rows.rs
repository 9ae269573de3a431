//! Writes the rows of a request to disk while it is parsed.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::stored_bytes::RowPlace;

/// The names of a field on the way to the rows, each in the forms that the vendor accepts.
pub(crate) type FieldPath = &'static [&'static [&'static str]];

/// Receives rows.
#[derive(Debug)]
pub(crate) struct RowSink {
    pub(crate) file: BufWriter<File>,
    pub(crate) places: Vec<RowPlace>,
    end: u64,
}

impl RowSink {
    pub(crate) fn new(file: File) -> Self {
        Self { file: BufWriter::with_capacity(1 << 18, file), places: Vec::new(), end: 0 }
    }

    fn take(&mut self, row: &str) -> std::io::Result<()> {
        self.file.write_all(row.as_bytes())?;
        let length = u32::try_from(row.len()).unwrap_or(u32::MAX);
        self.places.push(RowPlace { start: self.end, length });
        self.end += row.len() as u64;
        Ok(())
    }
}

/// Parses a body; the rows at `path` go to the sink, all other fields are returned.
pub(crate) fn split_rows(
    body: impl Read,
    path: FieldPath,
    sink: &mut RowSink,
) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 18, body));
    let rest = RowFinder { path, sink: &mut *sink }.deserialize(&mut reader)?;
    reader.end()?;
    sink.file.flush().map_err(serde_json::Error::io)?;
    Ok(rest)
}

/// Walks along the path.
struct RowFinder<'s> {
    path: FieldPath,
    sink: &'s mut RowSink,
}

impl<'de> DeserializeSeed<'de> for RowFinder<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RowFinder<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.path.is_empty() { "a list of requests" } else { "an object" })
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Some((names, path)) = self.path.split_first() else {
            return Err(A::Error::custom("expected a list of requests"));
        };
        let mut rest = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = if names.contains(&name.as_str()) {
                map.next_value_seed(RowFinder { path, sink: &mut *self.sink })?
            } else {
                map.next_value()?
            };
            rest.insert(name, value);
        }
        Ok(Value::Object(rest))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Value, A::Error> {
        if !self.path.is_empty() {
            return Err(A::Error::custom("expected an object"));
        }
        while let Some(row) = rows.next_element::<Box<RawValue>>()? {
            self.sink.take(row.get()).map_err(A::Error::custom)?;
        }
        Ok(Value::Null)
    }
}
