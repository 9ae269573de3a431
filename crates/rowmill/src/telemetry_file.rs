//! The telemetry of a run, and how a resume goes on with it.

use rowmill_core::ledger::LedgerEvent;
use rowmill_core::ports::RecordSink;
use rowmill_core::record::RowRecord;
use rowmill_core::run_header::{AppendedFileStart, RunHeader};
use rowmill_data::output::{LineSink, SinkContent};
use rowmill_types::{Problem, ProblemCode};

use crate::full_paths::full_path_text;
use crate::run_storage::RunStorage;
use crate::spec::RunSpec;

/// The telemetry file to go on with, and what it held before the ledger began.
///
/// A file that the ledger knows is written again from the ledger, so a crash between
/// ledger and telemetry leaves no gap.
pub(crate) fn resumed_telemetry(
    spec: &RunSpec,
    place: &RunStorage,
    before: Option<&RunHeader>,
) -> Result<Option<(LineSink, AppendedFileStart)>, Problem> {
    let Some(now) = telemetry_base(spec, telemetry_length(spec)) else { return Ok(None) };
    let folder = full_path_text(place.folder.path());
    let known = before.and_then(|before| {
        before.telemetry.as_ref().filter(|base| before.is_same_file(&base.path, (&now.path, &folder)))
    });
    let Some(&AppendedFileStart { length, .. }) = known else {
        return Ok(telemetry_sink(spec, u64::MAX)?.map(|sink| (sink, now)));
    };
    let base = AppendedFileStart { length, ..now };
    let Some(mut sink) = telemetry_sink(spec, base.length)? else { return Ok(None) };
    place.store.scan(&mut |scanned| match scanned.event {
        LedgerEvent::Ended(_) => replay(&mut sink, scanned.line),
        _ => Ok(()),
    })?;
    sink.flush()?;
    Ok(Some((sink, base)))
}

fn replay(sink: &mut LineSink, line: &[u8]) -> Result<(), Problem> {
    let record = RowRecord::parse(line.to_vec()).map_err(|error| {
        Problem::new(ProblemCode::LedgerUnusable, "a record of the ledger cannot be read").cause(error)
    })?;
    sink.publish(record.parts_for_sinks())
}

/// The file to append to, with so many of its bytes.
pub(crate) fn telemetry_sink(spec: &RunSpec, keep: u64) -> Result<Option<LineSink>, Problem> {
    spec.telemetry_output
        .as_deref()
        .map(|path| LineSink::append(path, SinkContent::Telemetry, keep))
        .transpose()
}

/// The file with its length, as a header has it.
pub(crate) fn telemetry_base(spec: &RunSpec, length: u64) -> Option<AppendedFileStart> {
    let path = spec.telemetry_output.as_deref()?;
    Some(AppendedFileStart { path: full_path_text(path), length })
}

/// How long the file is.
pub(crate) fn telemetry_length(spec: &RunSpec) -> u64 {
    spec.telemetry_output.as_ref().and_then(|path| path.metadata().ok()).map_or(0, |file| file.len())
}
