//! JSONL: unchanged envelopes, or flat rows.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use super::InputRowInclusion;
use super::cells::EnvelopeParts;
use super::columns::OutputColumns;
use super::writer::TableRowWriter;

/// Writes envelopes, with or without their input rows.
pub(super) struct EnvelopeWriter<W: Write> {
    out: BufWriter<W>,
    input: InputRowInclusion,
}

impl<W: Write> EnvelopeWriter<W> {
    pub(super) fn new(input: InputRowInclusion, out: W) -> Self {
        Self { out: BufWriter::with_capacity(1 << 18, out), input }
    }
}

impl<W: Write> TableRowWriter for EnvelopeWriter<W> {
    fn write_row(&mut self, envelope: &EnvelopeParts<'_>, line: &[u8]) -> io::Result<()> {
        if self.input == InputRowInclusion::Included || envelope.input.is_none() {
            self.out.write_all(line.trim_ascii())?;
            return self.out.write_all(b"\n");
        }
        let (id, number, ok) = (envelope.id, envelope.number, envelope.ok_text());
        let (result, error) = (envelope.result.unwrap_or("null"), envelope.error.unwrap_or("null"));
        write!(
            self.out,
            "{{\"id\":{id},\"row_number\":{number},\"ok\":{ok},\"result\":{result},\"error\":{error}"
        )?;
        if let Some(reused) = envelope.reused {
            write!(self.out, ",\"reused\":{reused}")?;
        }
        self.out.write_all(b"}\n")
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes an object per row; missing fields are left out.
pub(super) struct FlatWriter<W: Write> {
    out: BufWriter<W>,
    columns: Arc<OutputColumns>,
    /// The names as JSON, each with its colon.
    names: Vec<String>,
}

impl<W: Write> FlatWriter<W> {
    pub(super) fn new(columns: Arc<OutputColumns>, out: W) -> Self {
        // A string always serializes, so the fallback is never used.
        let name = |name: &str| format!("{}:", serde_json::to_string(name).unwrap_or_default());
        let names = columns.list.iter().map(|column| name(&column.name)).collect();
        Self { out: BufWriter::with_capacity(1 << 18, out), columns, names }
    }
}

impl<W: Write> TableRowWriter for FlatWriter<W> {
    fn write_row(&mut self, envelope: &EnvelopeParts<'_>, _: &[u8]) -> io::Result<()> {
        let mut before = b"{";
        for (cell, name) in self.columns.cells(envelope).into_iter().zip(&self.names) {
            if let Some(json) = cell {
                self.out.write_all(before)?;
                self.out.write_all(name.as_bytes())?;
                self.out.write_all(json.as_bytes())?;
                before = b",";
            }
        }
        self.out.write_all(b"}\n")
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}
