//! Progress: a live line on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rowmill::{Event, Observer};

use crate::numbers::{grouped, rate, time};
use crate::printer;
use crate::resolve::Show;

/// How often the live line is drawn.
const FRAME: Duration = Duration::from_millis(100);
/// Without a terminal, a line is printed at most this often.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// What has happened so far.
#[derive(Debug, Default)]
struct Counts {
    processed: AtomicU64,
    failed: AtomicU64,
    skipped: AtomicU64,
    in_flight: AtomicU64,
    retrying: AtomicU64,
    tokens: AtomicU64,
    /// Rows that were chosen so far, and at most how many ever will be.
    selected: AtomicU64,
    wanted: AtomicU64,
    all_read: AtomicBool,
    bytes_read: AtomicU64,
    bytes_total: AtomicU64,
    draining: AtomicBool,
}

/// Watches a run and shows how far it has come.
#[derive(Debug)]
pub(crate) struct Progress {
    counts: Arc<Counts>,
    bar: ProgressBar,
    every: Option<u64>,
    began: Instant,
    painter: Option<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
}

/// The part of a [`Progress`] that hears events.
struct Watcher {
    counts: Arc<Counts>,
    bar: ProgressBar,
    every: Option<u64>,
    began: Instant,
}

impl Progress {
    /// Starts to show progress as the user wants it.
    pub(crate) fn start(show: Show) -> Self {
        // A line that is drawn over and over would run into envelopes on the same screen.
        let shares_screen = show.envelopes_on_stdout && std::io::stdout().is_terminal();
        let live = show.progress && std::io::stderr().is_terminal() && !shares_screen;
        let bar = if live { live_bar() } else { ProgressBar::hidden() };
        let every = show.every.filter(|_| show.progress);
        let wanted = AtomicU64::new(show.wanted.unwrap_or(u64::MAX));
        let counts = Arc::new(Counts { wanted, ..Counts::default() });
        let ended = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let mut progress = Self { counts, bar, every, began, painter: None, ended };
        if show.progress {
            progress.painter = progress.paint(live);
        }
        progress
    }

    /// The observer to give to a run.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        let (counts, bar) = (self.counts.clone(), self.bar.clone());
        Arc::new(Watcher { counts, bar, every: self.every, began: self.began })
    }

    /// Prints a line above the live one.
    pub(crate) fn talk(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let bar = self.bar.clone();
        move |text| say(&bar, text)
    }

    /// Takes the live line away.
    pub(crate) fn finish(mut self) {
        self.ended.store(true, Relaxed);
        if let Some(painter) = self.painter.take() {
            painter.thread().unpark();
            // A painter that failed has nothing left to say.
            drop(painter.join());
        }
        self.bar.finish_and_clear();
    }

    fn paint(&self, live: bool) -> Option<JoinHandle<()>> {
        let (counts, bar, ended, began) =
            (self.counts.clone(), self.bar.clone(), self.ended.clone(), self.began);
        let every = self.every;
        let painter = move || {
            let mut next_line = PLAIN_INTERVAL;
            while !ended.load(Relaxed) {
                thread::park_timeout(FRAME);
                if live {
                    bar.set_message(counts.line(began));
                    bar.tick();
                } else if every.is_none() && began.elapsed() >= next_line {
                    next_line = began.elapsed() + PLAIN_INTERVAL;
                    printer::talk(&counts.line(began));
                }
            }
        };
        thread::Builder::new().name("rowmill-progress".into()).spawn(painter).ok()
    }
}

impl Observer for Watcher {
    fn observe(&self, event: &Event<'_>) {
        let counts = &self.counts;
        match event {
            Event::Read { position, selected, skipped } => {
                counts.selected.fetch_add(*selected, Relaxed);
                counts.bytes_read.store(position.read, Relaxed);
                counts.bytes_total.store(position.total.unwrap_or(0), Relaxed);
                counts.skipped.fetch_add(*skipped, Relaxed);
            }
            Event::Taken { rows } => {
                counts.in_flight.fetch_add(*rows as u64, Relaxed);
            }
            Event::Ended { ok, usage, called } => {
                if *called {
                    counts.in_flight.fetch_sub(1, Relaxed);
                }
                counts.tokens.fetch_add(usage.input + usage.output, Relaxed);
                counts.failed.fetch_add(u64::from(!ok), Relaxed);
                let processed = counts.processed.fetch_add(1, Relaxed) + 1;
                if self.every.is_some_and(|every| processed.is_multiple_of(every)) {
                    say(&self.bar, &counts.line(self.began));
                }
            }
            Event::Retrying { .. } => {
                counts.retrying.fetch_add(1, Relaxed);
            }
            Event::AllRead => counts.all_read.store(true, Relaxed),
            Event::Draining => counts.draining.store(true, Relaxed),
            _ => {}
        }
    }
}

impl Counts {
    /// The state of the run in one line.
    fn line(&self, began: Instant) -> String {
        let elapsed = began.elapsed();
        let processed = self.processed.load(Relaxed);
        let per_second = processed as f64 / elapsed.as_secs_f64().max(0.001);
        let total = self.total();
        let mut line = match total {
            Some(total) => {
                let share = (processed + self.skipped.load(Relaxed)) * 100 / total.max(1);
                format!("{share}% {} rows, {} rows/s", grouped(processed), rate(per_second))
            }
            None => format!("{} rows, {} rows/s", grouped(processed), rate(per_second)),
        };
        let mut add = |count: u64, what: &str| {
            if count > 0 {
                line.push_str(&format!(", {} {what}", grouped(count)));
            }
        };
        add(self.failed.load(Relaxed), "failed");
        add(self.skipped.load(Relaxed), "skipped");
        add(self.retrying.load(Relaxed), "retries");
        add(self.tokens.load(Relaxed), "tokens");
        add(self.in_flight.load(Relaxed), "in flight");
        if self.draining.load(Relaxed) {
            line.push_str(", stopping");
        } else if let Some(left) = total.and_then(|total| self.time_left(total, elapsed)) {
            line.push_str(&format!(", about {} left", time(left)));
        }
        line
    }

    /// How many rows there will be: counted once all are read, before that estimated
    /// from the share of the input that was read.
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

    fn time_left(&self, total: u64, elapsed: Duration) -> Option<Duration> {
        let processed = self.processed.load(Relaxed);
        let done = processed + self.skipped.load(Relaxed);
        if processed == 0 || total <= done || elapsed < Duration::from_secs(1) {
            return None;
        }
        Some(elapsed.mul_f64((total - done) as f64 / processed as f64))
    }
}

fn live_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{spinner} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn say(bar: &ProgressBar, text: &str) {
    if bar.is_hidden() { printer::talk(text) } else { bar.println(text) }
}
