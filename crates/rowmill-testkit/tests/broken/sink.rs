//! Sinks that violate their contract.

use std::sync::{Arc, Mutex};

use rowmill_core::ports::{PublishedRecord, RecordSink};
use rowmill_testkit::conformance::{SinkFacts, check_sink};
use rowmill_types::{Problem, ProblemCode};

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    HoldsBack,
    LeavesOutFailures,
    TurnsAround,
    WritesTwice,
    FlushesTwice,
    StartsAgain,
    RefusesLarge,
    CannotFlushNothing,
    Panics,
}

struct Broken {
    manner: Manner,
    written: Arc<Mutex<Vec<u8>>>,
    pending: Vec<Vec<u8>>,
    flushed: Vec<u8>,
}

impl RecordSink for Broken {
    fn publish(&mut self, published: PublishedRecord<'_>) -> Result<(), Problem> {
        let envelope = published.envelope;
        if self.manner == Manner::RefusesLarge && envelope.len() > 100_000 {
            return Err(Problem::new(ProblemCode::WriteFailed, "too large"));
        }
        assert!(self.manner != Manner::Panics || published.ok, "not ok");
        if self.manner == Manner::LeavesOutFailures && !published.ok {
            return Ok(());
        }
        let times = if self.manner == Manner::WritesTwice { 2 } else { 1 };
        self.pending.extend((0..times).map(|_| [envelope, b"\n"].concat()));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Problem> {
        if self.manner == Manner::CannotFlushNothing && self.pending.is_empty() {
            return Err(Problem::new(ProblemCode::WriteFailed, "nothing to write"));
        }
        let kept = if self.manner == Manner::HoldsBack { self.pending.pop() } else { None };
        if self.manner == Manner::TurnsAround {
            self.pending.reverse();
        }
        let mut written = self.written.lock().unwrap();
        let bytes = self.pending.concat();
        if self.manner == Manner::StartsAgain && !bytes.is_empty() {
            written.clear();
        }
        if self.manner == Manner::FlushesTwice && bytes.is_empty() {
            written.extend_from_slice(&self.flushed);
        }
        written.extend_from_slice(&bytes);
        self.flushed = bytes;
        self.pending = kept.into_iter().collect();
        Ok(())
    }
}

#[test]
fn every_promise_of_a_sink_is_checked() {
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::HoldsBack, "publishing a record: `{\"id\":1,"),
        (Manner::LeavesOutFailures, "publishing rows that are ok and rows that failed: `{\"id\":3,"),
        (Manner::TurnsAround, "is not there in its place after a flush"),
        (Manner::WritesTwice, "is there twice"),
        (Manner::FlushesTwice, "flushing once more: something is written a second time"),
        (Manner::StartsAgain, "publishing many records: what was written before is gone"),
        (Manner::RefusesLarge, "publishing a large record: it is refused: too large"),
        (Manner::CannotFlushNothing, "flushing without records: it cannot be flushed: nothing to write"),
        (Manner::Panics, "publishing rows that are ok and rows that failed: it panicked: not ok"),
    ] {
        let written = Arc::new(Mutex::new(b"from before\n".to_vec()));
        let facts = SinkFacts {
            written: Box::new(|| written.lock().unwrap().clone()),
            leaves: Box::new(|published| Some(published.envelope.to_vec())),
        };
        let mut sink = Broken { manner, written: written.clone(), pending: Vec::new(), flushed: Vec::new() };
        assert_reported(&manner, &check_sink(&mut sink, &facts), expected);
    }
}
