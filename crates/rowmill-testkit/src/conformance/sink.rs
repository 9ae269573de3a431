//! The contract of sinks.

use std::fmt;

use rowmill_core::ports::{PublishedRecord, RecordSink};
use rowmill_core::record::RowRecord;

use super::check_suite::{CheckResult, CheckSuite, ensure};
use super::records;

/// The length of a large result.
const LARGE: usize = 2 << 20;

/// Returns the bytes that a record must write; `None` if it writes nothing.
pub type ExpectedBytesFn<'a> = Box<dyn Fn(&PublishedRecord<'_>) -> Option<Vec<u8>> + 'a>;

/// The facts about a sink that only its author knows.
pub struct SinkFacts<'a> {
    /// Everything that the sink has written so far, for example the content of its file.
    pub written: Box<dyn Fn() -> Vec<u8> + 'a>,
    /// The bytes that each record must write.
    pub leaves: ExpectedBytesFn<'a>,
}

impl fmt::Debug for SinkFacts<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SinkFacts").finish_non_exhaustive()
    }
}

/// Checks `sink` against the contract of the port; returns every violation, nothing if it satisfies the
/// contract.
///
/// What a record writes is there once `flush` has returned, in the order of publication, and only once. There
/// may be nothing to flush, and records may follow a flush. Successful and failed rows, large records and
/// many of them are all accepted.
///
/// The sink should be new: anything written before the suite started is ignored.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use rowmill_core::ports::{PublishedRecord, RecordSink};
/// use rowmill_testkit::conformance::{SinkFacts, check_sink};
/// use rowmill_types::Problem;
///
/// /// Keeps the envelopes of failed rows.
/// struct Failures(Arc<Mutex<Vec<u8>>>);
///
/// impl RecordSink for Failures {
///     fn publish(&mut self, published: PublishedRecord<'_>) -> Result<(), Problem> {
///         if !published.ok {
///             self.0.lock().unwrap().extend_from_slice(published.envelope);
///         }
///         Ok(())
///     }
///
///     fn flush(&mut self) -> Result<(), Problem> {
///         Ok(())
///     }
/// }
///
/// let kept = Arc::new(Mutex::new(Vec::new()));
/// let facts = SinkFacts {
///     written: Box::new(|| kept.lock().unwrap().clone()),
///     leaves: Box::new(|published| (!published.ok).then(|| published.envelope.to_vec())),
/// };
/// assert_eq!(check_sink(&mut Failures(kept.clone()), &facts), Vec::<String>::new());
/// ```
pub fn check_sink(sink: &mut dyn RecordSink, facts: &SinkFacts<'_>) -> Vec<String> {
    let mut suite = CheckSuite::default();
    let mut seen = (facts.written)().len();
    suite.check("flushing without records", || {
        flush(sink)?;
        flush(sink)
    });
    let groups: Vec<(&str, Vec<RowRecord>)> = vec![
        ("a record", vec![records::ok(1, "yes")]),
        (
            "rows that are ok and rows that failed",
            vec![records::ok(2, "größer"), records::failed(3), records::ok(4, "")],
        ),
        ("a large record", vec![records::ok(5, &"x".repeat(LARGE)), records::failed(6)]),
        ("many records", (10..100).map(|number| records::ok(number, "one of many")).collect()),
    ];
    for (what, records) in groups {
        suite.check(&format!("publishing {what}"), || {
            for record in &records {
                sink.publish(record.parts_for_sinks())
                    .map_err(|problem| format!("it is refused: {}", problem.message))?;
            }
            flush(sink)?;
            let written = (facts.written)();
            let new = written.get(seen..).ok_or("what was written before is gone")?;
            seen = written.len();
            left(new, &records, facts)
        });
    }
    suite.check("flushing once more", || {
        flush(sink)?;
        ensure((facts.written)().len() == seen, || "something is written a second time".to_owned())
    });
    suite.deviations()
}

fn flush(sink: &mut dyn RecordSink) -> CheckResult {
    sink.flush().map_err(|problem| format!("it cannot be flushed: {}", problem.message))
}

/// Checks that every record has written its bytes, in order and once.
fn left(new: &[u8], records: &[RowRecord], facts: &SinkFacts<'_>) -> CheckResult {
    let mut rest = new;
    for record in records {
        let Some(bytes) = (facts.leaves)(&record.parts_for_sinks()) else { continue };
        let shown =
            String::from_utf8_lossy(bytes.get(..bytes.len().min(60)).unwrap_or_default()).into_owned();
        let place = find(rest, &bytes)
            .ok_or_else(|| format!("`{shown}…` is not there in its place after a flush"))?;
        rest = rest.get(place + bytes.len()..).unwrap_or_default();
        ensure(find(rest, &bytes).is_none(), || format!("`{shown}…` is there twice"))?;
    }
    Ok(())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    if wanted.is_empty() {
        return Some(0);
    }
    text.windows(wanted.len()).position(|window| window == wanted)
}
