//! Adapters that panic: the run ends with a problem, and no row is lost silently.

#![expect(clippy::panic, reason = "what fails here fails the test")]

use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};
use std::time::Duration;

use rowmill_core::ports::{Dataset, InputReadProgress, PublishedRecord, ReadLimit, RecordSink, RowSource};
use rowmill_engine::{StopCause, execute_run};
use rowmill_testkit::{FakeDataset, FakeModel};
use rowmill_types::{Problem, ProblemCode, RowReadResult};

use crate::acting::seconds;
use crate::support::Bench;

/// A source that panics after its rows.
struct PanickingSource(Box<dyn RowSource>);

impl RowSource for PanickingSource {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        match self.0.read(batch, room) {
            Ok(false) if batch.is_empty() => panic!("the source broke"),
            read => read.map(|_| true),
        }
    }

    fn position(&self) -> InputReadProgress {
        self.0.position()
    }
}

/// A source that panics when it is asked whether there is more, after its first row.
struct PanickingBetween {
    source: Box<dyn RowSource>,
    has_given: bool,
}

impl RowSource for PanickingBetween {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        self.has_given = true;
        self.source.read(batch, ReadLimit { rows: 1, ..room }).map(|_| true)
    }

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<()> {
        assert!(!self.has_given, "the source broke between two reads");
        Poll::Ready(())
    }

    fn position(&self) -> InputReadProgress {
        self.source.position()
    }
}

/// A source that panics where the loop itself asks it whether there is more, once it has given a row.
struct PanickingOnLoop {
    source: Box<dyn RowSource>,
    has_given: bool,
    /// The thread of the loop.
    home: ThreadId,
}

impl RowSource for PanickingOnLoop {
    fn read(&mut self, batch: &mut Vec<RowReadResult>, room: ReadLimit) -> Result<bool, Problem> {
        self.has_given = true;
        self.source.read(batch, ReadLimit { rows: 1, ..room }).map(|_| true)
    }

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<()> {
        assert!(!self.has_given || thread::current().id() != self.home, "the source broke on the loop");
        Poll::Ready(())
    }

    fn position(&self) -> InputReadProgress {
        self.source.position()
    }
}

/// A sink that panics when it is given a row.
struct PanickingSink;

impl RecordSink for PanickingSink {
    fn publish(&mut self, _: PublishedRecord<'_>) -> Result<(), Problem> {
        panic!("the sink broke")
    }

    fn flush(&mut self) -> Result<(), Problem> {
        Ok(())
    }
}

fn problem(stopped: Option<StopCause>) -> Problem {
    match stopped {
        Some(StopCause::Problem(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_input_whose_reader_panics_has_not_ended_and_stops_the_run_with_a_problem() {
    let mut bench = Bench::new(0, Arc::new(FakeModel::default()));
    let texts = (1..=300).map(|number| format!("{{\"p\":\"{number}\"}}"));
    bench.plan.source = Box::new(PanickingSource(FakeDataset::from_texts(texts).open().unwrap()));
    let (plan, watched) = bench.split();
    let problem = problem(execute_run(plan).await.unwrap().stopped);
    assert_eq!(problem.code, ProblemCode::Internal);
    let reported = (problem.message.as_str(), problem.cause.as_deref());
    assert_eq!(reported, ("reading the input failed", Some("the source broke")));
    assert_eq!(watched.numbers(), (1..=300).collect::<Vec<_>>(), "rows before it are answered");
}

#[tokio::test]
async fn a_panic_of_the_thread_that_reads_is_no_end_of_the_input_either() {
    let mut bench = Bench::new(0, Arc::new(FakeModel::default()));
    let source = FakeDataset::from_texts(["{\"p\":\"1\"}", "{\"p\":\"2\"}"]).open().unwrap();
    bench.plan.source = Box::new(PanickingBetween { source, has_given: false });
    let problem = problem(execute_run(bench.plan).await.unwrap().stopped);
    assert_eq!(
        (problem.code, problem.message.as_str()),
        (ProblemCode::Internal, "reading the input was interrupted")
    );
}

#[tokio::test]
async fn a_source_that_panics_on_the_loop_stops_the_run_with_a_problem_like_any_other() {
    let mut bench = Bench::new(0, Arc::new(FakeModel::default()));
    let texts = (1..=300).map(|number| format!("{{\"p\":\"{number}\"}}"));
    let source = FakeDataset::from_texts(texts).open().unwrap();
    let home = thread::current().id();
    bench.plan.source = Box::new(PanickingOnLoop { source, has_given: false, home });
    let (plan, watched) = bench.split();
    let problem = problem(execute_run(plan).await.unwrap().stopped);
    assert_eq!(problem.code, ProblemCode::Internal);
    let reported = (problem.message.as_str(), problem.cause.as_deref());
    assert_eq!(reported, ("reading the input failed", Some("the source broke on the loop")));
    let answered = watched.numbers();
    assert!(!answered.is_empty() && answered.iter().copied().eq(1..=answered.len() as u64), "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_stops_the_run_instead_of_keeping_it_waiting() {
    // More than the queue of the publisher holds.
    let model = FakeModel::default().delay(Duration::from_secs(1));
    let mut bench = Bench::new(5_000, Arc::new(model));
    bench.plan.sinks.in_input_order.push(Box::new(PanickingSink));
    // A run that is kept waiting ends here, and for another reason.
    bench.plan.stop_rules.deadline = Some(seconds(5_000.0));
    let (plan, watched) = bench.split();
    let problem = problem(execute_run(plan).await.unwrap().stopped);
    assert!(problem.message.contains("every record is in the ledger"), "{problem:?}");
    assert_eq!(problem.cause.as_deref(), Some("the sink broke"));
    let mut recorded = watched.log.rows("ledger");
    recorded.sort_unstable();
    assert_eq!(recorded, watched.log.rows("taken"));
}
