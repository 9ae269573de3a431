//! The locks on the files of a run.

use std::sync::{Arc, mpsc};

use rowmill_core::ports::{PublishedRecord, RecordSink};
use rowmill_engine::execute_run;
use rowmill_testkit::FakeModel;
use rowmill_types::Problem;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::support::Bench;

/// Reports when it is dropped.
struct Probe(mpsc::Sender<()>);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.send(()).ok();
    }
}

/// Reports that it has started to write, and writes until it is released.
struct SlowSink {
    begun: UnboundedSender<()>,
    go_on: mpsc::Receiver<()>,
}

impl RecordSink for SlowSink {
    fn publish(&mut self, _: PublishedRecord<'_>) -> Result<(), Problem> {
        self.begun.send(()).ok();
        self.go_on.recv().ok();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Problem> {
        Ok(())
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_gives_up_its_locks_only_when_nothing_is_written_any_more() {
    let (begun, mut has_begun) = unbounded_channel();
    let ((let_go_on, go_on), (gone, is_gone)) = (mpsc::channel(), mpsc::channel());
    let mut bench = Bench::new(1, Arc::new(FakeModel::default()));
    bench.plan.sinks.in_input_order = vec![Box::new(SlowSink { begun, go_on })];
    bench.plan.locks = Some(Arc::new(Probe(gone)));
    let (plan, _) = bench.split();
    tokio::select! {
        end = execute_run(plan) => panic!("it waits for its sink: {end:?}"),
        _ = has_begun.recv() => {}
    }
    assert!(is_gone.try_recv().is_err(), "another run could write to the same files");
    drop(let_go_on);
    assert!(is_gone.recv().is_ok());
}
