//! Writes the trace of each row when it is published.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use rowmill_core::ports::{PublishedRecord, RecordSink};
use rowmill_core::record::{RedactedTraceFacts, RowTrace, TracedError, TracedRowId};
use rowmill_types::settings::EXPORT_TRACES;
use rowmill_types::{Problem, ProblemCode, private_file_options};
use serde::Serialize;

use super::codex::write_session;
use super::name::trace_file_name;
use super::spans::write_spans;
use crate::output::{LineSink, write_problem};

/// Writes the trace of each row.
///
/// A row's files have been written to the operating system when [`RecordSink::publish`] returns: first the trace,
/// which gets its name only when it is complete, then the spans, then the line of the manifest. Publishing a
/// record again writes the same trace again; the duplicate lines are merged by
/// [`settle_traces`](super::settle_traces). So this sink must come before the one that marks a row as done.
#[derive(Debug)]
pub struct TraceSink {
    pub(super) folder: PathBuf,
    pub(super) draft: PathBuf,
    pub(super) settings: Arc<RedactedTraceFacts>,
    pub(super) manifest: LineSink,
    pub(super) spans: LineSink,
    /// Reused for each row.
    pub(super) buffer: Vec<u8>,
    #[expect(dead_code, reason = "the open file is the lock")]
    pub(super) lock: File,
}

#[derive(Serialize)]
struct ManifestLine<'a> {
    run_id: &'a str,
    row_number: u64,
    id: &'a TracedRowId<'a>,
    ok: bool,
    trace: Option<&'a str>,
    record_count: u64,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reused: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a TracedError<'a>>,
}

impl TraceSink {
    /// Writes the trace file if it has any content; returns its name and its number of records.
    fn write_file(&mut self, row: &RowTrace<'_>) -> Result<(Option<String>, u64), Problem> {
        if row.conversations.is_empty() {
            return Ok((None, 0));
        }
        self.buffer.clear();
        let records = write_session(row, &self.settings, &mut self.buffer);
        let name = trace_file_name(row, self.settings.entry_agent_name());
        let path = self.folder.join(&name);
        let draft = private_file_options().write(true).create(true).truncate(true).open(&self.draft);
        draft
            .and_then(|mut draft| draft.write_all(&self.buffer))
            .and_then(|()| fs::rename(&self.draft, &path))
            .map_err(|error| write_problem(&path, &error))?;
        Ok((Some(name), records))
    }

    fn write_spans(&mut self, row: &RowTrace<'_>) -> Result<(), Problem> {
        // If a row ended while no traces were kept, the time is unknown.
        if row.end == 0 {
            return Ok(());
        }
        self.buffer.clear();
        write_spans(row, &self.settings, &mut self.buffer);
        self.spans.push(&self.buffer);
        self.spans.flush()
    }

    fn write_manifest(
        &mut self,
        row: &RowTrace<'_>,
        trace: Option<&str>,
        records: u64,
    ) -> Result<(), Problem> {
        let line = ManifestLine {
            run_id: self.settings.run_id(),
            row_number: row.row_number,
            id: &row.id,
            ok: row.ok,
            trace,
            record_count: records,
            agent: self.settings.entry_agent_name(),
            reused: row.reused.as_deref(),
            error: row.error.as_ref(),
        };
        self.buffer.clear();
        let written = serde_json::to_writer(&mut self.buffer, &line);
        debug_assert!(written.is_ok(), "texts and numbers are always JSON");
        self.manifest.push(&self.buffer);
        self.manifest.flush()
    }
}

impl RecordSink for TraceSink {
    fn publish(&mut self, published: PublishedRecord<'_>) -> Result<(), Problem> {
        let settings = self.settings.clone();
        let row = match published.trace {
            Some(trace) => RowTrace::parse(trace),
            None => RowTrace::from_envelope(published.envelope, settings.redactor()),
        };
        let row = row.map_err(|error| {
            Problem::new(ProblemCode::LedgerUnusable, "the trace in a record of the ledger cannot be read")
                .cause(error)
                .hint(format!("omit {EXPORT_TRACES} to continue without traces"))
        })?;
        let (name, records) = self.write_file(&row)?;
        self.write_spans(&row)?;
        self.write_manifest(&row, name.as_deref(), records)
    }

    fn flush(&mut self) -> Result<(), Problem> {
        Ok(())
    }
}
