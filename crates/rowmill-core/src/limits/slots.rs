//! How many calls are in flight at once, found by trying.
//!
//! Few are sent until the first is answered, so that limits are known before they are
//! met. Then more are allowed while more are answered for it. When the provider is
//! overloaded there are fewer at once; after a pause they begin with one and double.
//! A failure now and then is no overload: fewer calls would not make it rarer. Where calls are
//! refused often, fewer are tried, and kept to if as many are answered for it.

use std::time::Duration;

use super::window::Window;

/// Where the search begins.
const FIRST: usize = 8;
/// More calls at once than this nobody asks for by accident.
const VERY_MANY: usize = 256;
/// An end of the search, whatever the provider takes.
const MOST: usize = 1_024;
/// What remains after an overload.
const CUT: f64 = 0.7;
/// What remains when it is tried whether as many are answered with fewer calls at once.
const FEWER: f64 = 0.8;
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
    /// What was measured before the last step: how many were allowed, and how many answers
    /// a second that made.
    before: Option<(usize, f64)>,
    next: Next,
    hold: u32,
    next_hold: u32,
    last_cut: Duration,
    /// How many were allowed before the last cut, and whether growth doubled.
    uncut: Option<(usize, bool)>,
    window: Window,
}

/// What is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    More,
    /// Calls are refused, and fewer of them may bring as many answers.
    Fewer,
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
            next: Next::More,
            hold: 0,
            next_hold: HOLD.0,
            last_cut: Duration::ZERO,
            uncut: None,
            window: Window::default(),
        }
    }

    /// Other users are there now, who say something else. What was found out of the provider stays.
    pub(super) fn set_parallel(&mut self, parallel: Parallel, now: Duration) {
        if self.parallel == parallel {
            return;
        }
        self.parallel = parallel;
        let most = parallel.ceiling();
        let least = match parallel {
            _ if !self.was_answered => first(parallel),
            // As many as were chosen need no search, unless fewer proved better.
            Parallel::AtMost(_) if self.regain.is_none() && self.last_cut.is_zero() => most,
            _ => 1,
        };
        self.allowed = self.allowed.max(least).min(most);
        self.regain = self.regain.map(|before| before.min(most)).filter(|&before| self.allowed < before);
        (self.before, self.uncut) = (None, None);
        self.window = Window::begin(now);
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
        self.window.was_answered(sent, now);
        if self.window.answers() >= LEAST_SAMPLE.max(self.allowed as u64) {
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
        self.end();
        if sent < self.last_cut || matches!(self.parallel, Parallel::AtMost(1)) {
            return;
        }
        self.uncut = Some((self.allowed, self.fast));
        self.allowed = part(self.allowed, CUT);
        self.regain = self.regain.map(|before| part(before, CUT)).filter(|&before| self.allowed < before);
        self.last_cut = now;
        self.fast = false;
        self.before = None;
        self.window = Window::begin(now);
    }

    /// The refusal that made the last cut proves to stand alone: takes the cut back.
    pub(super) fn restore(&mut self, now: Duration) {
        if let Some((allowed, fast)) = self.uncut.take() {
            self.allowed = self.allowed.max(allowed);
            self.fast = fast;
            self.window = Window::begin(now);
        }
    }

    /// A call that was sent at `sent` was refused, as some are, while others are answered. Whether
    /// fewer at once are better is found out by trying.
    pub(super) fn refused_alone(&mut self, sent: Duration, now: Duration) {
        self.end();
        self.window.was_refused(sent, now);
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
        self.next = Next::More;
        self.before = None;
        self.window = Window::begin(now);
    }

    fn close_window(&mut self, now: Duration) {
        let window = std::mem::replace(&mut self.window, Window::begin(now));
        if !window.was_full {
            // Something else is the limit, so nothing is learned of this one.
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
                let at_the_end = self.next == Next::More && self.allowed >= self.parallel.ceiling();
                self.next = match window.is_often_refused() && (self.next == Next::Fewer || at_the_end) {
                    true => Next::Fewer,
                    false => Next::More,
                };
                self.step(rate);
            }
        }
    }

    /// Whether the last step did good: enough of what was added came back as answers, or
    /// most of what was taken away was not missed.
    fn helped(&self, (allowed, before): (usize, f64), rate: f64, window: &Window) -> bool {
        let grown = self.allowed as f64 / allowed as f64 - 1.0;
        // A number that the user chose is not doubted unless calls are refused, only approached.
        let is_chosen = matches!(self.parallel, Parallel::AtMost(_)) && !window.is_often_refused();
        (is_chosen && grown >= 0.0) || rate >= before * (1.0 + HELPS * grown)
    }

    /// Goes back to so many, and tries the other way after a while.
    fn take_back(&mut self, allowed: usize, window: &Window) {
        let added = self.allowed > allowed;
        self.next = if added && window.is_often_refused() { Next::Fewer } else { Next::More };
        self.allowed = allowed;
        self.fast = false;
        self.hold = self.next_hold;
        self.next_hold = (self.next_hold * 2).min(HOLD.1);
    }

    fn step(&mut self, rate: f64) {
        self.before = Some((self.allowed, rate));
        self.allowed = match self.next {
            Next::Fewer => part(self.allowed, FEWER),
            Next::More if self.fast => self.allowed * 2,
            Next::More => self.allowed + (self.allowed / 4).max(1),
        };
        self.allowed = self.allowed.min(self.parallel.ceiling());
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
#[path = "slots_tests.rs"]
mod tests;
