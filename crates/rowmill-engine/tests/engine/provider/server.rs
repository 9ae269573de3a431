//! The provider itself: accepts calls, refuses them, answers, fails, and writes the bill.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rowmill_core::ports::Model;
use rowmill_testkit::fake_answer;
use rowmill_types::{
    CallError, CallFailure, Completion, RateLimitState, ReportedRateLimits, Request, TokenUsage,
};
use tokio::time::{Instant, sleep};

use super::chance::Chance;
use super::test_run::{Form, MAX_OUTPUT, Outage, ProviderTestRun, Tells, seconds};

/// A limit as the provider tracks it.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    pub(super) limit: f64,
    pub(super) level: f64,
    at: Duration,
    /// What was refilled, whether there was room for it or not, and what calls took.
    pub(super) granted: f64,
    pub(super) used: f64,
}

impl Bucket {
    fn new(limit: f64) -> Self {
        let limit = limit.ceil();
        Self { limit, level: limit, at: Duration::ZERO, granted: 0.0, used: 0.0 }
    }

    fn refill(&mut self, now: Duration) {
        let refilled = (now - self.at).as_secs_f64() * self.limit / 60.0;
        self.level = (self.level + refilled).min(self.limit);
        self.granted += refilled;
        self.at = now;
    }

    fn take(&mut self, amount: f64) {
        self.level -= amount;
        self.used += amount;
    }

    fn window(&self) -> RateLimitState {
        let reset = (self.limit - self.level).max(0.0) / self.limit * 60.0;
        RateLimitState {
            limit: self.limit as u64,
            remaining: self.level.max(0.0) as u64,
            reset: seconds(reset),
        }
    }
}

/// The state of the limits at a time.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) at: Duration,
    /// Whether a call arrived that was a first attempt.
    pub(super) is_first_try: bool,
    pub(super) buckets: Vec<Bucket>,
}

/// The provider's records.
#[derive(Debug)]
pub(super) struct Books {
    buckets: Vec<Bucket>,
    chance: Chance,
    changed: bool,
    pub(super) samples: Vec<Sample>,
    billed: u64,
    calls: u64,
    refusals: u64,
}

/// The provider of a test run.
#[derive(Debug)]
pub(crate) struct Server {
    pub(super) test_run: Arc<ProviderTestRun>,
    epoch: Instant,
    books: Mutex<Books>,
}

/// A call that was accepted.
struct Visit {
    usage: TokenUsage,
    latency: Duration,
    reported: Option<ReportedRateLimits>,
    fault: Option<Fault>,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Server,
    Broken,
    Malformed,
    Hangs,
}

impl Server {
    pub(crate) fn new(test_run: Arc<ProviderTestRun>) -> Self {
        let [requests, input, output] = test_run.limits;
        let buckets = match test_run.form {
            Form::Tokens => vec![Bucket::new(requests), Bucket::new(input + output)],
            Form::InputAndOutput => [requests, input, output].map(Bucket::new).to_vec(),
        };
        let books = Books {
            buckets,
            chance: Chance::new(!test_run.seed),
            changed: false,
            samples: Vec::new(),
            billed: 0,
            calls: 0,
            refusals: 0,
        };
        Self { test_run, epoch: Instant::now(), books: Mutex::new(books) }
    }

    /// Everything that was billed, in picodollars.
    pub(crate) fn billed(&self) -> u64 {
        self.books().billed
    }

    /// The number of calls, and how many of them were refused because of a limit.
    pub(crate) fn calls(&self) -> (u64, u64) {
        let books = self.books();
        (books.calls, books.refusals)
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// The current records.
    fn books_now(&self) -> (MutexGuard<'_, Books>, Duration) {
        let now = self.epoch.elapsed();
        let mut books = self.books();
        books.buckets.iter_mut().for_each(|bucket| bucket.refill(now));
        if let Some((at, factor)) = self.test_run.change
            && at <= now
            && !std::mem::replace(&mut books.changed, true)
        {
            for bucket in &mut books.buckets {
                bucket.limit = (bucket.limit * factor).ceil();
                bucket.level = bucket.level.min(bucket.limit);
            }
        }
        (books, now)
    }

    fn outage(&self, now: Duration) -> Option<Outage> {
        self.test_run.outage.filter(|outage| (outage.from..outage.until).contains(&now))
    }

    fn take_in(&self, request: &Request) -> Result<Visit, CallError> {
        let (mut books, now) = self.books_now();
        books.calls += 1;
        match self.outage(now) {
            Some(outage) if outage.refuses_connections => return Err(error(CallFailure::Connect, None)),
            Some(_) => return Err(error(CallFailure::Server, Some(503))),
            None => {}
        }
        let bytes: usize = request.messages.iter().map(|message| message.text.len()).sum();
        let tokens = (bytes as f64 * self.test_run.tokens_per_byte * books.chance.within(0.9, 1.1)).ceil();
        if let Some(refused) = self.refusal(&mut books, tokens) {
            return Err(refused);
        }
        books.buckets[0].take(1.0);
        books.buckets[1].take(tokens);
        let sample = Sample { at: now, is_first_try: request.attempt == 1, buckets: books.buckets.clone() };
        books.samples.push(sample);
        let (shape, mean) = self.test_run.output;
        let output = (shape.draw(mean, &mut books.chance) as u64).clamp(1, MAX_OUTPUT);
        let input = tokens as u64;
        let cached = if books.chance.happens(0.2) { input / 2 } else { 0 };
        let (shape, mean) = self.test_run.latency;
        let latency = seconds(shape.draw(mean, &mut books.chance));
        let kinds = [Fault::Server, Fault::Server, Fault::Broken, Fault::Malformed, Fault::Hangs];
        let fault = books.chance.happens(self.test_run.faults).then(|| books.chance.one_of(&kinds));
        let usage = TokenUsage { input, cached, output, ..TokenUsage::default() };
        if matches!(fault, Some(Fault::Hangs)) {
            books.billed += self.cost(&usage);
        }
        let reported = (self.test_run.tells == Tells::AsItStoodAtFirst).then(|| self.rates(&books));
        Ok(Visit { usage, latency, reported, fault })
    }

    fn refusal(&self, books: &mut Books, tokens: f64) -> Option<CallError> {
        let short = |bucket: &Bucket, need: f64| (need - bucket.level) / bucket.limit * 60.0;
        let mut wait = short(&books.buckets[0], 1.0).max(short(&books.buckets[1], tokens));
        if let Some(output) = books.buckets.get(2) {
            wait = wait.max(short(output, 0.0));
        }
        if wait <= 0.0 {
            return None;
        }
        books.refusals += 1;
        let retry_after = self.test_run.says_when.then(|| seconds(wait));
        let rates = (self.test_run.tells != Tells::Never).then(|| Box::new(self.rates(books)));
        Some(CallError { retry_after, rate_limits: rates, ..error(CallFailure::RateLimited, Some(429)) })
    }

    fn answer(&self, visit: Visit) -> Result<Completion, CallError> {
        let (mut books, now) = self.books_now();
        if matches!(visit.fault, Some(Fault::Server)) {
            return Err(error(CallFailure::Server, Some(500)));
        }
        let last = books.buckets.len() - 1;
        books.buckets[last].take(visit.usage.output as f64);
        books.billed += self.cost(&visit.usage);
        if visit.fault.is_some() || self.outage(now).is_some_and(|outage| outage.cuts_calls) {
            let malformed = matches!(visit.fault, Some(Fault::Malformed));
            return Err(error(
                if malformed { CallFailure::Malformed } else { CallFailure::ConnectionBroken },
                None,
            ));
        }
        let reported = match self.test_run.tells {
            Tells::Never => None,
            Tells::AsItStoodAtFirst => visit.reported,
            Tells::AsItStandsAtLast => Some(self.rates(&books)),
        };
        Ok(Completion {
            usage: Some(visit.usage),
            rate_limits: reported.map(Box::new),
            ..fake_answer("fine")
        })
    }

    fn cost(&self, usage: &TokenUsage) -> u64 {
        let prices = self.test_run.price.tokens;
        let (fresh, cached) = (usage.input - usage.cached, usage.cached);
        fresh * prices.input.pico() + cached * prices.cached.pico() + usage.output * prices.output.pico()
    }

    fn rates(&self, books: &Books) -> ReportedRateLimits {
        let window = |index: usize| books.buckets.get(index).map(Bucket::window);
        let requests = window(0);
        match self.test_run.form {
            Form::Tokens => {
                ReportedRateLimits { requests, tokens: window(1), ..ReportedRateLimits::default() }
            }
            Form::InputAndOutput => ReportedRateLimits {
                requests,
                input_tokens: window(1),
                output_tokens: window(2),
                ..ReportedRateLimits::default()
            },
        }
    }

    /// The network latency in one direction.
    fn transit(&self) -> Duration {
        seconds(self.books().chance.within(0.005, 0.06))
    }
}

impl Model for Server {
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
        Box::pin(async move {
            sleep(self.transit()).await;
            let outcome = match self.take_in(request) {
                Err(error) => Err(error),
                Ok(visit) => {
                    let hangs = matches!(visit.fault, Some(Fault::Hangs));
                    sleep(if hangs { seconds(1e6) } else { visit.latency }).await;
                    self.answer(visit)
                }
            };
            sleep(self.transit()).await;
            outcome
        })
    }
}

fn error(failure: CallFailure, status: Option<u16>) -> CallError {
    CallError { status, ..CallError::new(failure, format!("{failure:?}")) }
}
