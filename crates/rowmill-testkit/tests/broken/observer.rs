//! Observers that violate their contract.

use std::sync::mpsc;
use std::time::Duration;

use rowmill_core::ports::{Observer, RunEvent};
use rowmill_testkit::conformance::check_observer;

use super::assert_reported;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Right,
    PanicsAtOutages,
    PanicsInThreads,
    HoldsUp,
}

struct Broken(Manner, std::thread::ThreadId);

impl Observer for Broken {
    fn observe(&self, event: &RunEvent<'_>) {
        match (self.0, event) {
            (Manner::PanicsAtOutages, RunEvent::Waiting { wait: None, .. }) => panic!("how long"),
            (Manner::PanicsInThreads, _) => assert_eq!(std::thread::current().id(), self.1),
            (Manner::HoldsUp, RunEvent::Draining) if std::thread::current().id() == self.1 => {
                // Nothing is ever sent, so this takes as long as the timeout.
                let (_sender, receiver) = mpsc::channel::<()>();
                assert!(receiver.recv_timeout(Duration::from_millis(1100)).is_err());
            }
            _ => {}
        }
    }
}

#[test]
fn every_promise_of_an_observer_is_checked() {
    for (manner, expected) in [
        (Manner::Right, ""),
        (Manner::PanicsAtOutages, "wait: None }: it panicked: how long"),
        (Manner::PanicsInThreads, "events from several threads: it panicked"),
        (Manner::HoldsUp, "Draining: it held up the run for 1"),
    ] {
        assert_reported(&manner, &check_observer(&Broken(manner, std::thread::current().id())), expected);
    }
}
