//! Adapts the number of calls in flight automatically.
//!
//! Few calls are sent until the first is answered, so that limits are known before they are reached. Then the number
//! grows as long as that raises the rate of answers. When the provider is overloaded the number is cut; after a pause
//! it starts with one and doubles. An occasional failure is no overload: fewer calls would not make it rarer. If calls
//! are refused often, fewer are tried, and kept if the rate of answers stays the same.

use std::time::Duration;

use super::window::MeasurementWindow;

/// The start of the search.
const FIRST: usize = 8;
/// Nobody asks for more calls at once than this by accident.
const VERY_MANY: usize = 256;
/// The end of the search, whatever the provider accepts.
const MOST: usize = 1_024;
/// The share that remains after an overload.
const CUT: f64 = 0.7;
/// The share that remains when fewer calls at once are tried.
const FEWER: f64 = 0.8;
/// The number of overloads, beyond one in ten calls, after which fewer calls are better.
const STRAINED: f64 = 4.0;
/// The amount of strain that one answer removes.
const RELIEF: f64 = 0.1;
/// The share of the growth that must come back as throughput for the growth to count as useful.
const HELPS: f64 = 0.2;
/// The minimum number of calls in a measurement.
const LEAST_SAMPLE: u64 = 8;
/// After a pause of at least this length, calls start with one again.
const LONG_PAUSE: Duration = Duration::from_secs(5);
/// The number of windows to wait before trying more again: initial and maximum.
const HOLD: (u32, u32) = (1, 64);

/// How many calls may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallParallelism {
    /// As many as raise the throughput.
    Auto,
    /// As many as raise the throughput, up to this maximum, because this machine allows no more.
    AutoUpTo(usize),
    /// At most this many.
    AtMost(usize),
}

impl CallParallelism {
    /// The absolute maximum.
    #[must_use]
    pub fn max_calls(self) -> usize {
        match self {
            Self::Auto => MOST,
            Self::AutoUpTo(most) => most.clamp(1, MOST),
            Self::AtMost(most) => most.max(1),
        }
    }
}

/// Counts calls in flight and decides how many are allowed.
#[derive(Debug, Clone)]
pub(super) struct CallSlots {
    parallel: CallParallelism,
    allowed: usize,
    in_flight: usize,
    was_answered: bool,
    /// The number of overloads, reduced by the answers since.
    strain: f64,
    /// After a pause: the number allowed before it. Each answer allows one more until that is reached.
    regain: Option<usize>,
    /// Whether the number doubles, as at the start.
    fast: bool,
    /// The measurement before the last step: how many calls were allowed, and the rate of answers per second.
    before: Option<(usize, f64)>,
    next: SlotProbe,
    hold: u32,
    next_hold: u32,
    last_cut: Duration,
    /// The number allowed before the last cut, and whether growth was doubling.
    uncut: Option<(usize, bool)>,
    window: MeasurementWindow,
}

/// The next step of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotProbe {
    More,
    /// Calls are refused, and fewer of them may yield as many answers.
    Fewer,
}

impl CallSlots {
    pub(super) fn new(parallel: CallParallelism) -> Self {
        Self {
            parallel,
            allowed: first(parallel),
            in_flight: 0,
            was_answered: false,
            // Pessimistic at the start.
            strain: STRAINED,
            regain: None,
            fast: true,
            before: None,
            next: SlotProbe::More,
            hold: 0,
            next_hold: HOLD.0,
            last_cut: Duration::ZERO,
            uncut: None,
            window: MeasurementWindow::default(),
        }
    }

    /// The set of users has changed, and with it the setting. What was learned about the provider is kept.
    pub(super) fn set_parallel(&mut self, parallel: CallParallelism, now: Duration) {
        if self.parallel == parallel {
            return;
        }
        self.parallel = parallel;
        let most = parallel.max_calls();
        let least = match parallel {
            _ if !self.was_answered => first(parallel),
            // A fixed number needs no search, unless fewer proved better.
            CallParallelism::AtMost(_) if self.regain.is_none() && self.last_cut.is_zero() => most,
            _ => 1,
        };
        self.allowed = self.allowed.max(least).min(most);
        self.regain = self.regain.map(|before| before.min(most)).filter(|&before| self.allowed < before);
        (self.before, self.uncut) = (None, None);
        self.window = MeasurementWindow::begin(now);
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn max_calls_in_flight(&self) -> usize {
        self.allowed
    }

    /// How many calls there may soon be: growth doubles, and a number set by the user is reached with the first answer.
    pub(super) fn wanted_calls(&self) -> usize {
        let soon = if self.was_answered { self.allowed.saturating_mul(2) } else { FIRST * 2 };
        match self.parallel {
            CallParallelism::AtMost(most) if !self.was_answered => most.max(1),
            parallel => soon.min(parallel.max_calls()),
        }
    }

    /// Whether another call may start; if not, a call is being kept waiting.
    pub(super) fn has_room(&mut self) -> bool {
        let room = self.in_flight < self.allowed;
        self.window.was_full |= !room;
        room
    }

    pub(super) fn begin(&mut self) {
        self.in_flight += 1;
    }

    /// A call ended without information about the right number of calls.
    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A call that was sent at `sent` was answered.
    pub(super) fn record_answer(&mut self, sent: Duration, now: Duration) {
        self.end();
        self.strain = (self.strain - RELIEF).max(0.0);
        if !std::mem::replace(&mut self.was_answered, true)
            && let CallParallelism::AtMost(most) = self.parallel
        {
            // A number set by the user needs no search once the provider is known to answer.
            self.allowed = self.allowed.max(most.max(1));
            self.window = MeasurementWindow::begin(now);
        }
        if let Some(before) = self.regain {
            self.allowed += 1;
            self.regain = Some(before).filter(|&before| self.allowed < before);
            self.window = MeasurementWindow::begin(now);
            return;
        }
        self.window.record_answer(sent, now);
        if self.window.answers() >= LEAST_SAMPLE.max(self.allowed as u64) {
            self.close_window(now);
        }
    }

    /// A call that was sent at `sent` met an overload. Occasional ones are ignored; if there are many, the number is
    /// reduced.
    pub(super) fn record_overload(&mut self, sent: Duration, now: Duration) {
        self.strain = (self.strain + 1.0).min(STRAINED + 1.0);
        if self.strain >= STRAINED { self.record_refusal(sent, now) } else { self.end() }
    }

    /// A call that was sent at `sent` was refused, so fewer at once are better. Calls that were sent before the last
    /// cut add no information.
    pub(super) fn record_refusal(&mut self, sent: Duration, now: Duration) {
        self.end();
        if sent < self.last_cut || matches!(self.parallel, CallParallelism::AtMost(1)) {
            return;
        }
        self.uncut = Some((self.allowed, self.fast));
        self.allowed = part(self.allowed, CUT);
        self.regain = self.regain.map(|before| part(before, CUT)).filter(|&before| self.allowed < before);
        self.last_cut = now;
        self.fast = false;
        self.before = None;
        self.window = MeasurementWindow::begin(now);
    }

    /// The refusal that caused the last cut turns out to be isolated: undoes the cut.
    pub(super) fn undo_last_cut(&mut self, now: Duration) {
        if let Some((allowed, fast)) = self.uncut.take() {
            self.allowed = self.allowed.max(allowed);
            self.fast = fast;
            self.window = MeasurementWindow::begin(now);
        }
    }

    /// A call that was sent at `sent` was refused while others are answered. Whether fewer at once are better is
    /// determined by trying.
    pub(super) fn record_stray_refusal(&mut self, sent: Duration, now: Duration) {
        self.end();
        self.window.record_refusal(sent, now);
    }

    /// This machine had no resources for a call: the number is limited to the calls now in flight. `false` if there are
    /// none, so that there is no end to wait for.
    pub(super) fn record_local_shortage(&mut self, now: Duration) -> bool {
        self.end();
        self.allowed = self.in_flight.clamp(1, self.allowed);
        self.fast = false;
        self.before = None;
        self.window = MeasurementWindow::begin(now);
        self.in_flight > 0
    }

    /// No call is sent for a while; after a long pause calls start with one.
    pub(super) fn record_pause(&mut self, pause: Duration, now: Duration) {
        if pause >= LONG_PAUSE {
            self.restart(now);
        }
    }

    /// Restarts with one call after a pause, so that not all calls come at once.
    pub(super) fn restart(&mut self, now: Duration) {
        let before = self.regain.unwrap_or(0).max(self.allowed);
        self.regain = Some(before).filter(|&before| before > 1);
        self.allowed = 1;
        self.hold = 0;
        self.next = SlotProbe::More;
        self.before = None;
        self.window = MeasurementWindow::begin(now);
    }

    fn close_window(&mut self, now: Duration) {
        let window = std::mem::replace(&mut self.window, MeasurementWindow::begin(now));
        if !window.was_full {
            // Another limit applies, so nothing is learned about this one.
            let before = self.before.take().map_or(0, |(allowed, _)| allowed);
            self.allowed = self.allowed.max(before);
            return;
        }
        if self.hold > 0 {
            self.hold -= 1;
            return;
        }
        let rate = self.allowed as f64 / window.seconds_per_answer();
        match self.before.take() {
            Some(before) if !self.helped(before, rate, &window) => self.take_back(before.0, &window),
            before => {
                if before.is_some() {
                    self.next_hold = HOLD.0;
                }
                let at_the_end = self.next == SlotProbe::More && self.allowed >= self.parallel.max_calls();
                self.next = match window.is_often_refused() && (self.next == SlotProbe::Fewer || at_the_end) {
                    true => SlotProbe::Fewer,
                    false => SlotProbe::More,
                };
                self.step(rate);
            }
        }
    }

    /// Whether the last step was useful: enough of the increase came back as answers, or most of the decrease was not
    /// missed.
    fn helped(&self, (allowed, before): (usize, f64), rate: f64, window: &MeasurementWindow) -> bool {
        let grown = self.allowed as f64 / allowed as f64 - 1.0;
        // A number set by the user is approached without question, unless calls are refused.
        let is_chosen = matches!(self.parallel, CallParallelism::AtMost(_)) && !window.is_often_refused();
        (is_chosen && grown >= 0.0) || rate >= before * (1.0 + HELPS * grown)
    }

    /// Returns to this number, and tries the other direction after a while.
    fn take_back(&mut self, allowed: usize, window: &MeasurementWindow) {
        let added = self.allowed > allowed;
        self.next = if added && window.is_often_refused() { SlotProbe::Fewer } else { SlotProbe::More };
        self.allowed = allowed;
        self.fast = false;
        self.hold = self.next_hold;
        self.next_hold = (self.next_hold * 2).min(HOLD.1);
    }

    fn step(&mut self, rate: f64) {
        self.before = Some((self.allowed, rate));
        self.allowed = match self.next {
            SlotProbe::Fewer => part(self.allowed, FEWER),
            SlotProbe::More if self.fast => self.allowed * 2,
            SlotProbe::More => self.allowed + (self.allowed / 4).max(1),
        };
        self.allowed = self.allowed.min(self.parallel.max_calls());
    }
}

/// How many calls are sent before the first is answered. A user who sets a very high number knows that the provider
/// accepts it.
fn first(parallel: CallParallelism) -> usize {
    match parallel {
        CallParallelism::AtMost(most) if most > VERY_MANY => most,
        _ => parallel.max_calls().min(FIRST),
    }
}

/// This share of the slots, but at least one.
fn part(slots: usize, share: f64) -> usize {
    ((slots as f64 * share) as usize).max(1)
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
