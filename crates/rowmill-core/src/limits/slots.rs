//! How many calls are in flight at once, found by trying.
//!
//! Few are sent until the first is answered, so that limits are known before they are
//! met. Then more are allowed while more are answered for it. When the provider is
//! overloaded there are fewer at once; after a pause they begin with one and double.
//! A failure now and then is no overload: fewer calls would not make it rarer.

use std::time::Duration;

/// Where the search begins.
const FIRST: usize = 8;
/// More calls at once than this nobody asks for by accident.
const VERY_MANY: usize = 256;
/// An end of the search, whatever the provider takes.
const MOST: usize = 1_024;
/// What remains after an overload.
const CUT: f64 = 0.7;
/// What remains where some calls are refused and most are answered.
const GENTLE_CUT: f64 = 0.9;
/// How many overloads, beyond one in ten calls, show that fewer calls are good.
const STRAINED: f64 = 4.0;
/// What an answer makes up for.
const RELIEF: f64 = 0.1;
/// How much of the growth must come back as throughput for it to count as a help.
const HELPS: f64 = 0.2;
/// Calls that a measurement needs at least.
const LEAST_SAMPLE: u64 = 8;
/// After a pause of this length calls begin with one again.
const LONG_PAUSE: Duration = Duration::from_secs(5);
/// Windows to wait before trying more again, at first and at most.
const HOLD: (u32, u32) = (1, 64);

/// How many calls may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parallel {
    /// As many as help.
    Auto,
    /// As many as help, and so many at most, because this machine allows no more.
    AutoUpTo(usize),
    /// So many at most.
    AtMost(usize),
}

impl Parallel {
    /// No more than this, ever.
    #[must_use]
    pub fn ceiling(self) -> usize {
        match self {
            Self::Auto => MOST,
            Self::AutoUpTo(most) => most.clamp(1, MOST),
            Self::AtMost(most) => most.max(1),
        }
    }
}

/// Counts calls in flight and decides how many there may be.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    parallel: Parallel,
    allowed: usize,
    in_flight: usize,
    was_answered: bool,
    /// Overloads that were met, less what answers since have made up for.
    strain: f64,
    /// After a pause, how many there were before it; each answer allows one more until then.
    regain: Option<usize>,
    /// Whether growth doubles, as at the start.
    fast: bool,
    /// What was measured before the last growth: how many were allowed, and how many answers
    /// a second that made.
    before: Option<(usize, f64)>,
    hold: u32,
    next_hold: u32,
    last_cut: Duration,
    window: Window,
}

/// A measurement of how long calls take while as many are in flight as may be.
///
/// The middle of their times is taken by ratio, so that a few calls that take very long
/// decide nothing.
#[derive(Debug, Clone, Default)]
struct Window {
    began: Duration,
    calls: u64,
    logarithms: f64,
    /// Whether a call was kept waiting for a slot.
    was_full: bool,
}

impl Window {
    fn begin(now: Duration) -> Self {
        Self { began: now, ..Self::default() }
    }

    /// Takes in a call, if it was sent after the measurement began.
    fn saw(&mut self, sent: Duration, now: Duration) {
        if sent >= self.began {
            self.calls += 1;
            self.logarithms += now.saturating_sub(sent).as_secs_f64().max(1e-6).ln();
        }
    }

    fn seconds(&self) -> f64 {
        (self.logarithms / self.calls.max(1) as f64).exp()
    }
}

impl Slots {
    pub(super) fn new(parallel: Parallel) -> Self {
        Self {
            parallel,
            allowed: first(parallel),
            in_flight: 0,
            was_answered: false,
            // Nothing is known in the provider's favour yet.
            strain: STRAINED,
            regain: None,
            fast: true,
            before: None,
            hold: 0,
            next_hold: HOLD.0,
            last_cut: Duration::ZERO,
            window: Window::default(),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn allowed(&self) -> usize {
        self.allowed
    }

    /// How many calls there may soon be: growth doubles, and a number that the user chose is
    /// there with the first answer.
    pub(super) fn wanted(&self) -> usize {
        let soon = if self.was_answered { self.allowed.saturating_mul(2) } else { FIRST * 2 };
        match self.parallel {
            Parallel::AtMost(most) if !self.was_answered => most.max(1),
            parallel => soon.min(parallel.ceiling()),
        }
    }

    /// Whether another call may begin; if not, someone is being kept waiting.
    pub(super) fn has_room(&mut self) -> bool {
        let room = self.in_flight < self.allowed;
        self.window.was_full |= !room;
        room
    }

    pub(super) fn begin(&mut self) {
        self.in_flight += 1;
    }

    /// A call ended without telling anything about how many are good.
    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A call that was sent at `sent` was answered.
    pub(super) fn answered(&mut self, sent: Duration, now: Duration) {
        self.end();
        self.strain = (self.strain - RELIEF).max(0.0);
        if !std::mem::replace(&mut self.was_answered, true)
            && let Parallel::AtMost(most) = self.parallel
        {
            // A number that the user chose needs no search once the provider is known to answer.
            self.allowed = self.allowed.max(most.max(1));
            self.window = Window::begin(now);
        }
        if let Some(before) = self.regain {
            self.allowed += 1;
            self.regain = Some(before).filter(|&before| self.allowed < before);
            self.window = Window::begin(now);
            return;
        }
        self.window.saw(sent, now);
        if self.window.calls >= LEAST_SAMPLE.max(self.allowed as u64) {
            self.close_window(now);
        }
    }

    /// A call that was sent at `sent` met an overload. One now and then is an accident; when there
    /// are so many, fewer calls are better.
    pub(super) fn overloaded(&mut self, sent: Duration, now: Duration) {
        self.strain = (self.strain + 1.0).min(STRAINED + 1.0);
        if self.strain >= STRAINED { self.refused(sent, now) } else { self.end() }
    }

    /// A call that was sent at `sent` was refused, so that fewer at once are better. Calls
    /// that were sent before the last cut say nothing new.
    pub(super) fn refused(&mut self, sent: Duration, now: Duration) {
        self.cut(sent, now, CUT);
    }

    fn cut(&mut self, sent: Duration, now: Duration, share: f64) {
        self.end();
        if sent < self.last_cut || matches!(self.parallel, Parallel::AtMost(1)) {
            return;
        }
        self.allowed = part(self.allowed, share);
        self.regain = self.regain.map(|before| part(before, share)).filter(|&before| self.allowed < before);
        self.last_cut = now;
        self.fast = false;
        self.before = None;
        self.window = Window::begin(now);
    }

    /// A call that was sent at `sent` was refused, as some are, while most are answered: slightly
    /// fewer at once may be better. More are tried again soon.
    pub(super) fn fewer(&mut self, sent: Duration, now: Duration) {
        self.cut(sent, now, GENTLE_CUT);
        self.hold = self.hold.min(1);
    }

    /// This machine had no room for a call: no more go out than are in flight now. `false` if
    /// there are none, so that there is no end to wait for.
    pub(super) fn crowded(&mut self, now: Duration) -> bool {
        self.end();
        self.allowed = self.in_flight.clamp(1, self.allowed);
        self.fast = false;
        self.before = None;
        self.window = Window::begin(now);
        self.in_flight > 0
    }

    /// No call goes out for a while; after a long while they begin with one.
    pub(super) fn paused(&mut self, pause: Duration, now: Duration) {
        if pause >= LONG_PAUSE {
            self.restart(now);
        }
    }

    /// Begins anew with one call after a pause, so that they do not all come at once.
    pub(super) fn restart(&mut self, now: Duration) {
        let before = self.regain.unwrap_or(0).max(self.allowed);
        self.regain = Some(before).filter(|&before| before > 1);
        self.allowed = 1;
        self.hold = 0;
        self.before = None;
        self.window = Window::begin(now);
    }

    fn close_window(&mut self, now: Duration) {
        let rate = self.allowed as f64 / self.window.seconds();
        let was_full = self.window.was_full;
        self.window = Window::begin(now);
        if !was_full {
            // Something else is the limit, so nothing is learned of this one.
            self.before = None;
            return;
        }
        if self.hold > 0 {
            self.hold -= 1;
            return;
        }
        let helped = self.before.is_none_or(|(allowed, before)| {
            let grown = self.allowed as f64 / allowed as f64 - 1.0;
            rate >= before * (1.0 + HELPS * grown)
        });
        match self.before {
            // A number that the user chose is not doubted, only approached.
            Some((allowed, _)) if !helped && !matches!(self.parallel, Parallel::AtMost(_)) => {
                self.allowed = allowed;
                self.before = None;
                self.fast = false;
                self.hold = self.next_hold;
                self.next_hold = (self.next_hold * 2).min(HOLD.1);
            }
            _ => self.grow(rate),
        }
    }

    fn grow(&mut self, rate: f64) {
        if self.before.is_some() {
            self.next_hold = HOLD.0;
        }
        self.before = Some((self.allowed, rate));
        let more = if self.fast { self.allowed * 2 } else { self.allowed + (self.allowed / 4).max(1) };
        self.allowed = more.min(self.parallel.ceiling());
    }
}

/// How many calls are sent before the first is answered. Who asks for very many knows that
/// the provider takes them.
fn first(parallel: Parallel) -> usize {
    match parallel {
        Parallel::AtMost(most) if most > VERY_MANY => most,
        _ => parallel.ceiling().min(FIRST),
    }
}

/// So much of so many, and one at least.
fn part(slots: usize, share: f64) -> usize {
    ((slots as f64 * share) as usize).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A server that answers each call after `latency`, but no more than `most` a second.
    fn settle(slots: &mut Slots, latency: f64, most: f64, seconds: f64, from: f64) -> f64 {
        let mut now = from;
        let mut calls = VecDeque::new();
        while now < from + seconds {
            while slots.has_room() {
                slots.begin();
                calls.push_back(now);
            }
            let Some(sent) = calls.pop_front() else { break };
            now = (sent + latency).max(now + 1.0 / most);
            slots.answered(Duration::from_secs_f64(sent), Duration::from_secs_f64(now));
        }
        // The calls that are left are given up.
        calls.iter().for_each(|_| slots.end());
        now
    }

    #[test]
    fn more_calls_are_allowed_while_more_are_answered_for_it() {
        let mut slots = Slots::new(Parallel::Auto);
        settle(&mut slots, 1.0, 1e9, 30.0, 0.0);
        assert_eq!(slots.allowed(), MOST);
        let mut slots = Slots::new(Parallel::AutoUpTo(40));
        settle(&mut slots, 1.0, 1e9, 30.0, 0.0);
        assert_eq!(slots.allowed(), 40);
        let mut slots = Slots::new(Parallel::Auto);
        settle(&mut slots, 1.0, 50.0, 600.0, 0.0);
        assert!((40..=130).contains(&slots.allowed()), "{}", slots.allowed());
    }

    #[test]
    fn a_server_that_becomes_faster_is_noticed_however_long_it_was_slow() {
        let mut slots = Slots::new(Parallel::Auto);
        let now = settle(&mut slots, 1.0, 20.0, 2_000.0, 0.0);
        let slow = slots.allowed();
        settle(&mut slots, 1.0, 400.0, 2_000.0, now);
        assert!(slots.allowed() > slow * 4, "{} after {slow}", slots.allowed());
    }

    #[test]
    fn an_overload_cuts_once_for_all_calls_that_met_it_and_growth_begins_again() {
        let mut slots = Slots::new(Parallel::AtMost(100));
        slots.answered(Duration::ZERO, Duration::ZERO);
        (0..100).for_each(|_| slots.begin());
        for _ in 0..50 {
            slots.overloaded(Duration::from_secs(1), Duration::from_secs(2));
        }
        assert_eq!(slots.allowed(), 70);
        (0..50).for_each(|_| slots.end());
        settle(&mut slots, 1.0, 1e9, 60.0, 2.0);
        assert_eq!(slots.allowed(), 100);
    }

    #[test]
    fn an_overload_of_one_call_in_twenty_five_cuts_nothing_and_one_in_four_does() {
        for (every, holds) in [(25, true), (4, false)] {
            let mut slots = Slots::new(Parallel::AtMost(100));
            (0..100).for_each(|_| slots.answered(Duration::ZERO, Duration::ZERO));
            for call in 1..=1_000 {
                slots.begin();
                let now = Duration::from_secs(call);
                if call % every == 0 {
                    slots.overloaded(now, now);
                } else {
                    slots.answered(now, now);
                }
            }
            assert_eq!(slots.allowed() == 100, holds, "one in {every}: {}", slots.allowed());
        }
    }

    #[test]
    fn after_a_pause_calls_begin_with_one_and_double() {
        let mut slots = Slots::new(Parallel::AtMost(64));
        slots.answered(Duration::ZERO, Duration::ZERO);
        slots.restart(Duration::ZERO);
        slots.restart(Duration::ZERO);
        let mut rounds = vec![];
        while slots.allowed() < 64 {
            rounds.push(slots.allowed());
            (0..slots.allowed()).for_each(|_| slots.begin());
            (0..slots.in_flight()).for_each(|_| slots.answered(Duration::ZERO, Duration::ZERO));
        }
        assert_eq!(rounds, [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn few_calls_are_sent_before_the_first_is_answered() {
        for (parallel, first, then) in [
            (Parallel::AtMost(64), 8, 64),
            (Parallel::AtMost(3), 3, 3),
            (Parallel::Auto, 8, 8),
            (Parallel::AutoUpTo(3), 3, 3),
        ] {
            let mut slots = Slots::new(parallel);
            assert_eq!(slots.allowed(), first);
            slots.answered(Duration::ZERO, Duration::ZERO);
            assert_eq!(slots.allowed(), then);
        }
    }
}
