//! The contract of observers.

use std::thread;
use std::time::{Duration, Instant};

use rowmill_core::limits::WaitReason;
use rowmill_core::ports::{InputReadProgress, Observer, RunEvent};
use rowmill_types::{CallError, CallFailure, Money, RowError, RowErrorKind, TokenUsage};

use super::check_suite::{CheckResult, CheckSuite, ensure};

/// Far more time than an observer may take for one event.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How many threads report events at once.
const THREADS: usize = 4;

/// Checks `observer` against the contract of the port; returns every violation, nothing if it satisfies the
/// contract.
///
/// It accepts every kind of event, in an order that does not occur in runs, and from several threads. It
/// returns immediately: more than a second for one event is reported as a violation, and a run is slow long
/// before that.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use rowmill_core::ports::{RunEvent, Observer};
/// use rowmill_testkit::conformance::check_observer;
///
/// /// Counts rows that failed.
/// #[derive(Default)]
/// struct Failures(AtomicU64);
///
/// impl Observer for Failures {
///     fn observe(&self, event: &RunEvent<'_>) {
///         if let RunEvent::Ended { error: Some(_), .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// assert_eq!(check_observer(&Failures::default()), Vec::<String>::new());
/// ```
pub fn check_observer(observer: &dyn Observer) -> Vec<String> {
    let mut suite = CheckSuite::default();
    let reasons = reasons();
    let error = CallError::new(CallFailure::Server, "overloaded");
    let failed = RowError::new(RowErrorKind::ServerError, "overloaded");
    let events = events(&reasons, &error, &failed);
    for event in &events {
        suite.check(&format!("{event:?}"), || at_once(observer, event));
    }
    suite.check("events in another order", || {
        events.iter().rev().try_for_each(|event| at_once(observer, event))
    });
    suite.check("events from several threads", || {
        thread::scope(|scope| {
            let tellers: Vec<_> = (0..THREADS)
                .map(|_| scope.spawn(|| events.iter().for_each(|event| observer.observe(event))))
                .collect();
            let panicked =
                tellers.into_iter().map(thread::ScopedJoinHandle::join).any(|ended| ended.is_err());
            ensure(!panicked, || "it panicked".to_owned())
        })
    });
    suite.deviations()
}

fn at_once(observer: &dyn Observer, event: &RunEvent<'_>) -> CheckResult {
    let started = Instant::now();
    observer.observe(event);
    let took = started.elapsed();
    ensure(took < AT_ONCE, || format!("it held up the run for {} ms", took.as_millis()))
}

fn reasons() -> Vec<WaitReason> {
    vec![
        WaitReason::Slots,
        WaitReason::Priming,
        WaitReason::Requests(60),
        WaitReason::Tokens(1000),
        WaitReason::InputTokens(1000),
        WaitReason::OutputTokens(1000),
        WaitReason::Throttled,
        WaitReason::Quota("used up".to_owned()),
        WaitReason::Outage("no answer".to_owned()),
        WaitReason::Budget,
    ]
}

fn events<'a>(reasons: &'a [WaitReason], error: &'a CallError, failed: &'a RowError) -> Vec<RunEvent<'a>> {
    let endpoint = "conformance.größe";
    let second = Duration::from_secs(1);
    let usage = TokenUsage { input: 10, output: 5, ..TokenUsage::default() };
    let mut events = vec![
        RunEvent::Read {
            position: InputReadProgress { read: 10, total: Some(100) },
            selected: 3,
            skipped: 1,
        },
        RunEvent::Read { position: InputReadProgress::default(), selected: 0, skipped: 0 },
        RunEvent::Taken { rows: 3 },
    ];
    for reason in reasons {
        events.push(RunEvent::Waiting { endpoint, reason, wait: Some(second) });
        events.push(RunEvent::Waiting { endpoint, reason, wait: None });
    }
    events.extend([
        RunEvent::WaitEnded { endpoint },
        RunEvent::AnswersCapped { endpoint, tokens: 4_096, calls: Some(64) },
        RunEvent::AnswersCapped { endpoint, tokens: 4_096, calls: None },
        RunEvent::PacedByBudget { endpoint, calls: 1 },
        RunEvent::OutputCapIgnored { endpoint, allowed: 4_096, used: 5_000 },
        RunEvent::Retrying { number: 1, error, wait: Duration::ZERO },
        RunEvent::Ended { number: 1, error: None, called: true, usage, cost: Money::default() },
        RunEvent::Ended {
            number: 2,
            error: Some(failed),
            called: false,
            usage: TokenUsage::default(),
            cost: Money::default(),
        },
        RunEvent::FinishedAgain { number: 3, error: None },
        RunEvent::FinishedAgain { number: 4, error: Some(failed) },
        RunEvent::AllRead,
        RunEvent::Released { rows: 2 },
        RunEvent::Draining,
    ]);
    events
}
