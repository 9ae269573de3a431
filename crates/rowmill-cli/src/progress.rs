//! Progress: a live line on a terminal, otherwise plain lines.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rowmill::{BudgetLimits, Money, Observer, RunEvent, RunNotice, WaitReason};

use crate::live_lines::LiveLines;
use crate::number_text::{count_phrase, duration_text, group_digits, rate_text};
use crate::printer;
use crate::process_environment::process_environment;
use crate::progress_jobs::JobProgress;
use crate::progress_line::{PartImportance, ProgressPart, fit_parts, join_parts};
use crate::resolve::DisplayOptions;

/// The interval at which the live line is drawn.
const FRAME: Duration = Duration::from_millis(100);
/// The minimum interval between plain lines without a terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
/// Shorter waits are part of the normal pace and not shown.
const NOTICEABLE: Duration = Duration::from_secs(1);
/// The same wait is reported again after this time.
const REPORT_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// The period over which the displayed rate is measured.
const LATELY: Duration = Duration::from_secs(30);

/// The state of the run so far.
#[derive(Debug, Default)]
struct ProgressCounts {
    processed: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
    in_flight: AtomicU64,
    retrying: AtomicU64,
    tokens: AtomicU64,
    /// The rows selected so far, and an upper bound on their total number.
    selected: AtomicU64,
    wanted: AtomicU64,
    all_read: AtomicBool,
    bytes_read: AtomicU64,
    bytes_total: AtomicU64,
    draining: AtomicBool,
    /// In picodollars.
    cost: AtomicU64,
    budget: BudgetLimits,
    /// The amount that earlier parts of the run spent, in picodollars and in tokens.
    cost_before: AtomicU64,
    tokens_before: AtomicU64,
    waiting: Mutex<Option<CurrentWait>>,
    jobs: JobProgress,
    /// The last serious reason for waiting that was reported, and when.
    last_wait: Mutex<Option<(WaitReason, Instant)>>,
    /// The row counts at some moments of the last half minute, oldest first.
    recent: Mutex<VecDeque<(Instant, u64)>>,
}

/// The reason why calls wait.
#[derive(Debug)]
struct CurrentWait {
    endpoint: String,
    reason: WaitReason,
    since: Instant,
    until: Option<Instant>,
    /// When calls were sent again, if they were.
    over: Option<Instant>,
}

/// Observes a run and shows its progress.
#[derive(Debug)]
pub(crate) struct ProgressDisplay {
    counts: Arc<ProgressCounts>,
    screen: LiveLines,
    every: Option<u64>,
    began: Instant,
    painter: Option<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
}

/// The part of a [`ProgressDisplay`] that receives events.
struct ProgressObserver {
    /// Whether anything is shown at all.
    tells: bool,
    counts: Arc<ProgressCounts>,
    screen: LiveLines,
    every: Option<u64>,
    began: Instant,
}

impl ProgressDisplay {
    /// Starts to show progress as the user wants it.
    pub(crate) fn start(show: DisplayOptions) -> Self {
        // A line that is redrawn would mix with envelopes on the same screen.
        let shares_screen = show.envelopes_on_stdout && std::io::stdout().is_terminal();
        let live = show.progress && can_move_cursor() && !shares_screen;
        let screen = if live { LiveLines::on_terminal() } else { LiveLines::default() };
        let every = show.every.filter(|_| show.progress);
        let wanted = AtomicU64::new(show.wanted.unwrap_or(u64::MAX));
        let counts = Arc::new(ProgressCounts { wanted, budget: show.budget, ..ProgressCounts::default() });
        let ended = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let mut progress = Self { counts, screen, every, began, painter: None, ended };
        if show.progress {
            progress.painter = progress.paint(live);
        }
        progress
    }

    /// The observer to pass to a run.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        let (counts, screen) = (self.counts.clone(), self.screen.clone());
        let tells = self.painter.is_some();
        Arc::new(ProgressObserver { tells, counts, screen, every: self.every, began: self.began })
    }

    /// Tells what to say to a user who stops waiting, if nothing but batch jobs is waited for.
    pub(crate) fn job_watcher(&self) -> impl Fn() -> Option<String> + 'static {
        let counts = self.counts.clone();
        move || counts.jobs.stop_waiting_message()
    }

    /// Prints a line above the live one.
    pub(crate) fn line_printer(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let screen = self.screen.clone();
        move |text| screen.print_above(text)
    }

    /// Prints notices above the live line.
    pub(crate) fn notice_printer(&self) -> impl Fn(RunNotice) + Send + Sync + 'static {
        let screen = self.screen.clone();
        move |notice| {
            let line = printer::notice_line(&notice);
            match notice {
                RunNotice::SignIn(_) => screen.print_above_unredacted(&line),
                RunNotice::Info(_) | RunNotice::Warning(_) => screen.print_above(&line),
            }
        }
    }

    /// Removes the live line.
    pub(crate) fn finish(mut self) {
        self.ended.store(true, Relaxed);
        if let Some(painter) = self.painter.take() {
            painter.thread().unpark();
            // A painter that panicked has nothing left to draw.
            drop(painter.join());
        }
        self.screen.clear();
    }

    fn paint(&self, live: bool) -> Option<JoinHandle<()>> {
        let (counts, screen, ended, began) =
            (self.counts.clone(), self.screen.clone(), self.ended.clone(), self.began);
        let every = self.every;
        let painter = move || {
            let mut next_line = PLAIN_INTERVAL;
            while !ended.load(Relaxed) {
                thread::park_timeout(FRAME);
                if live {
                    screen.draw(&fit_parts(&counts.parts(began), LiveLines::columns()));
                } else if every.is_none() && began.elapsed() >= next_line {
                    next_line = began.elapsed() + PLAIN_INTERVAL;
                    printer::talk(&join_parts(&counts.parts(began)));
                }
            }
        };
        thread::Builder::new().name("rowmill-progress".into()).spawn(painter).ok()
    }
}

impl Observer for ProgressObserver {
    fn observe(&self, event: &RunEvent<'_>) {
        let counts = &self.counts;
        match event {
            // A later pass reads the same rows again.
            RunEvent::Read { .. } if counts.jobs.is_later_pass() => counts.jobs.rows_go_on(),
            RunEvent::Read { position, selected, skipped } => {
                counts.selected.fetch_add(*selected, Relaxed);
                counts.bytes_read.store(position.read, Relaxed);
                counts.bytes_total.store(position.total.unwrap_or(0), Relaxed);
                counts.skipped.fetch_add(*skipped, Relaxed);
            }
            RunEvent::SpentBefore { spent } => {
                counts.cost_before.store(spent.cost.pico(), Relaxed);
                counts.tokens_before.store(spent.tokens, Relaxed);
            }
            RunEvent::Taken { rows } => {
                counts.in_flight.fetch_add(*rows as u64, Relaxed);
            }
            RunEvent::Ended { error, usage, called, cost, .. } => {
                counts.cost.fetch_add(cost.pico(), Relaxed);
                if *called {
                    counts.in_flight.fetch_sub(1, Relaxed);
                }
                counts.tokens.fetch_add(usage.tokens(), Relaxed);
                counts.failed.fetch_add(u64::from(error.is_some()), Relaxed);
                let processed = counts.processed.fetch_add(1, Relaxed) + 1;
                if self.every.is_some_and(|every| processed.is_multiple_of(every)) {
                    self.screen.print_above(&join_parts(&counts.parts(self.began)));
                }
            }
            RunEvent::Retrying { .. } => {
                counts.retrying.fetch_add(1, Relaxed);
            }
            RunEvent::BatchJobs { counts: jobs } => counts.jobs.saw(jobs),
            RunEvent::Released { rows } | RunEvent::Parked { rows } => {
                counts.in_flight.fetch_sub(*rows as u64, Relaxed);
            }
            RunEvent::Waiting { endpoint, reason, wait } => self.waits(endpoint, reason, *wait),
            RunEvent::WaitEnded { .. } => {
                if let Some(waiting) = counts.waiting().as_mut() {
                    waiting.over = Some(Instant::now());
                }
            }
            RunEvent::AllRead => counts.all_read.store(true, Relaxed),
            RunEvent::Draining => counts.draining.store(true, Relaxed),
            _ => {}
        }
    }
}

impl ProgressObserver {
    /// Records the reason for waiting. Serious reasons are also reported once, in a permanent line.
    fn waits(&self, endpoint: &str, reason: &WaitReason, wait: Option<Duration>) {
        let mut waiting = self.counts.waiting();
        let now = Instant::now();
        let until = wait.map(|wait| now + wait);
        if let Some(known) = waiting.as_mut().filter(|known| known.reason == *reason) {
            if known.over.is_some_and(|over| now.duration_since(over) >= NOTICEABLE) {
                known.since = now;
            }
            (known.until, known.over) = (until, None);
            return;
        }
        let endpoint = printer::shown(endpoint).into_owned();
        let reported = CurrentWait { endpoint, reason: reason.clone(), since: now, until, over: None };
        if reason.is_serious() && self.tells && self.counts.is_news(reason, now) {
            self.screen.print_above(&format!("waiting {}", reported.text(now)));
        }
        *waiting = Some(reported);
    }
}

impl CurrentWait {
    fn text(&self, now: Instant) -> String {
        let next = match self.until.map(|until| until.saturating_duration_since(now)) {
            Some(left) if !left.is_zero() => format!("; next attempt in {}", duration_text(left)),
            _ => String::new(),
        };
        format!("for {} ({}){next}", self.reason, self.endpoint)
    }
}

impl ProgressCounts {
    fn waiting(&self) -> MutexGuard<'_, Option<CurrentWait>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a serious reason was not reported in the last minute; marks it as reported now.
    fn is_news(&self, reason: &WaitReason, now: Instant) -> bool {
        let mut current = self.last_wait.lock().unwrap_or_else(PoisonError::into_inner);
        let known = current
            .as_ref()
            .is_some_and(|(before, at)| before == reason && now.duration_since(*at) < REPORT_AGAIN_AFTER);
        if !known {
            *current = Some((reason.clone(), now));
        }
        !known
    }

    fn waits_gravely(&self) -> bool {
        self.waiting().as_ref().is_some_and(|waiting| waiting.over.is_none() && waiting.reason.is_serious())
    }

    /// The reason for waiting, unless it is only the normal alternation of calls.
    fn wait_text(&self) -> Option<String> {
        let now = Instant::now();
        let waiting = self.waiting();
        let shown = waiting.as_ref().filter(|waiting| waiting.reason != WaitReason::Slots)?;
        let left = shown.until.map(|until| until.saturating_duration_since(now)).unwrap_or_default();
        if shown.reason.is_serious() || left >= NOTICEABLE {
            return shown.over.is_none().then(|| format!("waiting {}", shown.text(now)));
        }
        // Calls at the pace of a limit wait for it again and again.
        let is_late = shown.over.is_none_or(|over| now.duration_since(over) < NOTICEABLE);
        let lasts = now.duration_since(shown.since) >= NOTICEABLE;
        (is_late && lasts).then(|| format!("throttled by {}", shown.reason))
    }

    /// The state of the run, in the order of display.
    fn parts(&self, began: Instant) -> Vec<ProgressPart> {
        let jobs = self.jobs.parts();
        if !jobs.is_empty() {
            return self.ended_parts().into_iter().chain(jobs).collect();
        }
        let elapsed = began.elapsed();
        let processed = self.processed.load(Relaxed);
        let per_second = self.rate_now(processed, elapsed);
        let total = self.total();
        let mut parts = Vec::new();
        let mut add = |importance, text| parts.push(ProgressPart { importance, text });
        let rows = count_phrase(processed, "row");
        add(
            PartImportance::Rows,
            match total {
                Some(total) => {
                    let share = (processed + self.skipped.load(Relaxed)) * 100 / total.max(1);
                    format!("{share}% {rows}")
                }
                None => rows,
            },
        );
        add(PartImportance::Rate, format!("{} rows/s", rate_text(per_second)));
        for (importance, count, one, many) in [
            (PartImportance::Failed, &self.failed, "failed", "failed"),
            (PartImportance::Skipped, &self.skipped, "skipped", "skipped"),
            (PartImportance::Retries, &self.retrying, "retry", "retries"),
            (PartImportance::Tokens, &self.tokens, "token", "tokens"),
            (PartImportance::InFlight, &self.in_flight, "in flight", "in flight"),
        ] {
            match count.load(Relaxed) {
                0 => {}
                1 => add(importance, format!("1 {one}")),
                count => add(importance, format!("{} {many}", group_digits(count))),
            }
        }
        let cost = Money::from_pico(self.cost.load(Relaxed));
        if cost > Money::ZERO {
            add(PartImportance::Cost, cost.to_string());
        }
        if let Some(text) = self.wait_text() {
            add(PartImportance::Waiting, text);
        }
        if self.draining.load(Relaxed) {
            add(PartImportance::Stopping, "stopping".to_owned());
        } else if self.waits_gravely() {
            // The remaining time is unknown during such a wait.
        } else if let Some(rows) = self.rows_to_budget(total) {
            let in_time = match Duration::try_from_secs_f64(rows as f64 / per_second) {
                Ok(left) if rows > 0 => format!(" in about {}", duration_text(left)),
                _ => " soon".to_owned(),
            };
            let rows = count_phrase(processed + rows, "row");
            add(PartImportance::TimeLeft, format!("budget exhausted{in_time}, after about {rows}"));
        } else if let Some(left) = total.and_then(|total| self.time_left(total, per_second)) {
            add(PartImportance::TimeLeft, format!("about {} left", duration_text(left)));
        }
        parts
    }

    /// The rows that have ended, if there are any.
    fn ended_parts(&self) -> Vec<ProgressPart> {
        let (processed, failed) = (self.processed.load(Relaxed), self.failed.load(Relaxed));
        let rows = (PartImportance::Rows, count_phrase(processed, "row"), processed);
        let failures = (PartImportance::Failed, format!("{} failed", group_digits(failed)), failed);
        let parts = [rows, failures].into_iter().filter(|(_, _, count)| *count > 0);
        parts.map(|(importance, text, _)| ProgressPart { importance, text }).collect()
    }

    /// How many more rows the budget is enough for, if that is fewer than remain.
    fn rows_to_budget(&self, total: Option<u64>) -> Option<u64> {
        let processed = self.processed.load(Relaxed);
        let rows_for = |limit: u64, before: &AtomicU64, now: &AtomicU64| {
            let used = now.load(Relaxed);
            let left = limit.saturating_sub(before.load(Relaxed)).saturating_sub(used);
            let rows = u128::from(left) * u128::from(processed) / u128::from(used.max(1));
            (used > 0).then(|| u64::try_from(rows).unwrap_or(u64::MAX))
        };
        let cost = self.budget.cost.and_then(|limit| rows_for(limit.pico(), &self.cost_before, &self.cost));
        let tokens = self.budget.tokens.and_then(|limit| rows_for(limit, &self.tokens_before, &self.tokens));
        let rows = cost.into_iter().chain(tokens).min()?;
        let left = total.map_or(u64::MAX, |total| {
            total.saturating_sub(processed).saturating_sub(self.skipped.load(Relaxed))
        });
        (rows < left).then_some(rows)
    }

    /// The total number of rows: counted once all are read, before that estimated from the share of the
    /// input that was read.
    fn total(&self) -> Option<u64> {
        let selected = self.selected.load(Relaxed);
        if self.all_read.load(Relaxed) {
            return Some(selected);
        }
        let (read, bytes) = (self.bytes_read.load(Relaxed), self.bytes_total.load(Relaxed));
        let wanted = Some(self.wanted.load(Relaxed)).filter(|&wanted| wanted < u64::MAX);
        let estimate = (read > 0 && bytes > 0).then(|| (selected as f64 * bytes as f64 / read as f64) as u64);
        match (estimate, wanted) {
            (Some(estimate), Some(wanted)) => Some(estimate.min(wanted)),
            (estimate, wanted) => estimate.or(wanted),
        }
    }

    /// The recent number of rows per second: a burst at the start does not predict the rest.
    fn rate_now(&self, processed: u64, elapsed: Duration) -> f64 {
        let now = Instant::now();
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.back().is_none_or(|(at, _)| now.duration_since(*at) >= Duration::from_secs(1)) {
            recent.push_back((now, processed));
        }
        while recent.len() > 2 && recent.front().is_some_and(|(at, _)| now.duration_since(*at) > LATELY) {
            recent.pop_front();
        }
        match recent.front() {
            Some((at, before)) if now.duration_since(*at) >= LATELY / 3 => {
                (processed - before) as f64 / now.duration_since(*at).as_secs_f64()
            }
            _ => processed as f64 / elapsed.as_secs_f64().max(0.001),
        }
    }

    fn time_left(&self, total: u64, per_second: f64) -> Option<Duration> {
        let processed = self.processed.load(Relaxed);
        let done = processed + self.skipped.load(Relaxed);
        if processed == 0 || total <= done || per_second <= 0.0 {
            return None;
        }
        Duration::try_from_secs_f64((total - done) as f64 / per_second).ok()
    }
}

/// Whether standard error is a terminal on which lines can be redrawn.
fn can_move_cursor() -> bool {
    std::io::stderr().is_terminal()
        && process_environment().variable("TERM").is_some_and(|kind| kind != "dumb")
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
