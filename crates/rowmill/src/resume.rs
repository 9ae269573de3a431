//! Reads what an earlier run left and opens the ledger to go on with.

use rowmill_core::fingerprint::Fingerprint;
use rowmill_core::ports::Sink;
use rowmill_core::record::Record;
use rowmill_core::resume::Resume;
use rowmill_data::output::{LineSink, OutputFile, OutputScan, Part, scan_output};
use rowmill_store::file::{FileLedger, Line, SinkBase, Started, WorkFolder, scan, started_line};
use rowmill_types::{Problem, ProblemCode};

use crate::spec::{Existing, RunSpec};

/// The first answers that no longer fit on a full disk fit into this much.
const RESERVE_PER_ROW: usize = 4 * 1024;
const RESERVE: std::ops::RangeInclusive<usize> = 64 * 1024..=16 * 1024 * 1024;

/// What a run starts from.
pub(crate) struct Beginning {
    pub(crate) ledger: FileLedger,
    pub(crate) resume: Resume,
    /// What the output held, already mended.
    pub(crate) output: OutputScan,
    pub(crate) telemetry: Option<LineSink>,
    /// Whether an earlier run was found.
    pub(crate) found_run: bool,
    /// Whether its settings could be compared.
    pub(crate) compared: bool,
}

/// Starts a new run: whatever was there is replaced.
pub(crate) fn fresh(
    spec: &RunSpec,
    folder: &WorkFolder,
    run: &str,
    at: &str,
    fingerprint: &Fingerprint,
) -> Result<Beginning, Problem> {
    let telemetry = telemetry_sink(spec, 0)?;
    let first = started_line(run, at, fingerprint, telemetry_base(spec, 0));
    let ledger = FileLedger::create(folder, &first, reserve(spec.parallel))?;
    let output = OutputScan::default();
    Ok(Beginning { ledger, resume: Resume::default(), output, telemetry, found_run: false, compared: true })
}

/// Goes on with an earlier run. `output` is `None` for standard output, which gets
/// everything again from the ledger.
pub(crate) fn resumed(
    spec: &RunSpec,
    folder: &WorkFolder,
    output: Option<&OutputFile>,
    run: &str,
    at: &str,
    fingerprint: &Fingerprint,
) -> Result<Beginning, Problem> {
    let mut resume = Resume::default();
    let mut envelopes = 0u64;
    let found = match output {
        Some(file) => {
            let found = scan_output(file.path(), |head| {
                envelopes += 1;
                resume.saw_output(head);
            })?;
            file.mend(&found)?;
            found
        }
        None => OutputScan::default(),
    };
    if !folder.has_ledger() {
        let start = fresh_ledger(spec, folder, run, at, fingerprint)?;
        return Ok(Beginning { resume, output: found, found_run: envelopes > 0, compared: envelopes == 0, ..start });
    }
    let mut started: Option<Box<Started>> = None;
    let mut telemetry: Option<LineSink> = None;
    let scanned = scan(&folder.ledger(), |line, span, bytes| {
        match line {
            Line::Started(line) => {
                compare(&line.fingerprint, fingerprint, spec.existing)?;
                telemetry = replayed_telemetry(spec, &line)?;
                started = Some(line);
            }
            Line::Taken(rows) => resume.saw_taken(&rows),
            Line::Ended(head) => {
                resume.saw_ended(&head, span);
                if let Some(sink) = &mut telemetry {
                    replay(sink, bytes)?;
                }
            }
        }
        Ok(())
    })?;
    let Some(started) = started else {
        // Not even the first line was written: nothing had been sent.
        let start = fresh_ledger(spec, folder, run, at, fingerprint)?;
        return Ok(Beginning { resume, output: found, found_run: envelopes > 0, compared: envelopes == 0, ..start });
    };
    let ledger = if started.fingerprint == *fingerprint {
        FileLedger::reopen(folder, scanned.length, reserve(spec.parallel))?
    } else {
        FileLedger::reopen_with(folder, scanned.length, reserve(spec.parallel), &changed_line(run, at, fingerprint, &started))?
    };
    let telemetry = match telemetry {
        Some(mut sink) => {
            sink.flush()?;
            Some(sink)
        }
        None => telemetry_sink(spec, u64::MAX)?,
    };
    Ok(Beginning { ledger, resume, output: found, telemetry, found_run: true, compared: true })
}

/// A ledger for an output whose earlier ledger is gone.
fn fresh_ledger(
    spec: &RunSpec,
    folder: &WorkFolder,
    run: &str,
    at: &str,
    fingerprint: &Fingerprint,
) -> Result<Beginning, Problem> {
    let telemetry = telemetry_sink(spec, u64::MAX)?;
    let length = spec.telemetry_output.as_ref().and_then(|path| path.metadata().ok()).map_or(0, |file| file.len());
    let first = started_line(run, at, fingerprint, telemetry_base(spec, length));
    let ledger = FileLedger::create(folder, &first, reserve(spec.parallel))?;
    let output = OutputScan::default();
    Ok(Beginning { ledger, resume: Resume::default(), output, telemetry, found_run: false, compared: true })
}

/// From here on the run has other settings, and a later resume is compared with these.
fn changed_line(run: &str, at: &str, fingerprint: &Fingerprint, before: &Started) -> Vec<u8> {
    started_line(run, at, fingerprint, before.telemetry.clone())
}

fn compare(before: &Fingerprint, now: &Fingerprint, existing: Existing) -> Result<(), Problem> {
    let differences = before.differences(now);
    if differences.is_empty() || existing == Existing::ResumeChanged {
        return Ok(());
    }
    let message = format!("the run to be resumed was made with other settings: {}", differences.join("; "));
    Err(Problem::new(ProblemCode::ChangedRun, message)
        .hint("go back to those settings, or say `--accept-changes` to mix both in one output"))
}

/// The telemetry file as the ledger knows it: what the ledger holds is written again,
/// so a crash between ledger and telemetry leaves no gap.
fn replayed_telemetry(spec: &RunSpec, started: &Started) -> Result<Option<LineSink>, Problem> {
    let (Some(base), Some(path)) = (&started.telemetry, absolute(spec)) else { return Ok(None) };
    if base.path == path { telemetry_sink(spec, base.length) } else { Ok(None) }
}

fn replay(sink: &mut LineSink, line: &[u8]) -> Result<(), Problem> {
    let record = Record::parse(line.to_vec()).map_err(|error| {
        Problem::new(ProblemCode::LedgerUnusable, "a record of the ledger cannot be read").cause(error)
    })?;
    sink.publish(rowmill_core::ports::Published {
        envelope: record.envelope(),
        telemetry: record.telemetry(),
        ok: record.ok,
    })
}

fn telemetry_sink(spec: &RunSpec, keep: u64) -> Result<Option<LineSink>, Problem> {
    spec.telemetry_output.as_deref().map(|path| LineSink::append(path, Part::Telemetry, keep)).transpose()
}

fn telemetry_base(spec: &RunSpec, length: u64) -> Option<SinkBase> {
    absolute(spec).map(|path| SinkBase { path, length })
}

fn absolute(spec: &RunSpec) -> Option<String> {
    let path = spec.telemetry_output.as_deref()?;
    Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned())
}

/// Leaves the ledger of an ended run with its first line only: the output has the rest.
pub(crate) fn compact(
    spec: &RunSpec,
    folder: &WorkFolder,
    run: &str,
    at: &str,
    fingerprint: &Fingerprint,
) -> Result<(), Problem> {
    let length = spec.telemetry_output.as_ref().and_then(|path| path.metadata().ok()).map_or(0, |file| file.len());
    drop(FileLedger::create(folder, &started_line(run, at, fingerprint, telemetry_base(spec, length)), 0)?);
    folder.tidy();
    Ok(())
}

fn reserve(parallel: usize) -> usize {
    (parallel * RESERVE_PER_ROW).clamp(*RESERVE.start(), *RESERVE.end())
}
