//! What lies between the feed and the calls: rows that wait, answers that are looked up,
//! and rows that ask what another row is asking already.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rowmill_core::asked::asked_key;
use rowmill_core::ports::{AskedKey, KeptAnswer};
use rowmill_core::record::Reused;
use rowmill_core::validate::ResultSchema;

use crate::Answers;
use crate::feed::Taken;
use crate::prepared::{Ended, Prepared};

type Lookup = BoxFuture<'static, (Prepared, Option<KeptAnswer>)>;

/// Rows that were read and are not in flight.
#[derive(Default)]
pub(crate) struct Intake {
    pub(crate) queue: VecDeque<Taken>,
    /// Rows that must be asked, before any that is still in the queue.
    ready: VecDeque<Prepared>,
    answers: Option<Answers>,
    lookups: FuturesUnordered<Lookup>,
    /// For each question that is being asked or looked up, the rows that ask the same.
    followers: HashMap<AskedKey, Vec<Prepared>>,
    parked: usize,
}

impl Intake {
    pub(crate) fn new(answers: Option<Answers>) -> Self {
        Self { answers, ..Self::default() }
    }

    /// Whether nothing is left that could become a call.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.ready.is_empty() && self.lookups.is_empty() && self.parked == 0
    }

    /// Rows that left the queue and are not in flight.
    pub(crate) fn held(&self) -> usize {
        self.ready.len() + self.lookups.len() + self.parked
    }

    pub(crate) fn next_ready(&mut self) -> Option<Prepared> {
        self.ready.pop_front()
    }

    /// Takes a row with its prompt in. It comes back if it must be asked now; otherwise its
    /// answer is looked up, or it waits for the row that asks the same.
    pub(crate) fn consider(&mut self, mut prepared: Prepared) -> Option<Prepared> {
        let Some(answers) = &self.answers else { return Some(prepared) };
        let key = asked_key(&answers.identity, &prepared.messages);
        prepared.key = Some(key);
        if let Some(followers) = self.followers.get_mut(&key) {
            followers.push(prepared);
            self.parked += 1;
            return None;
        }
        self.followers.insert(key, Vec::new());
        let store = Arc::clone(&answers.store);
        self.lookups.push(Box::pin(async move {
            let found = store.find(key).await;
            (prepared, found)
        }));
        None
    }

    pub(crate) fn is_looking(&self) -> bool {
        !self.lookups.is_empty()
    }

    /// Waits for the next look-up to end. Rows whose answer was found have ended.
    pub(crate) async fn looked_up(
        &mut self,
        schema: Option<&ResultSchema>,
        now: impl Fn() -> Duration,
    ) -> Vec<Ended> {
        let Some((prepared, found)) = self.lookups.next().await else { return Vec::new() };
        let Some((answer, answers)) = found.as_ref().zip(self.answers.as_ref()) else {
            self.ready.push_back(prepared);
            return Vec::new();
        };
        let (key, kept_before) = (prepared.key, answers.kept_before);
        match prepared.reuse(answer, kept_before, schema, now()) {
            Ok(ended) => {
                let mut all = vec![ended];
                all.extend(self.answer_followers(key, answer, schema, now()));
                all
            }
            Err(prepared) => {
                self.ready.push_back(prepared);
                Vec::new()
            }
        }
    }

    /// A row that was asked has ended: its answer is kept, and those that ask the same get
    /// it. Where it failed, the next of them is asked.
    pub(crate) fn asked(&mut self, ended: &Ended, schema: Option<&ResultSchema>) -> Vec<Ended> {
        let Some(key) = ended.key else { return Vec::new() };
        match (&ended.kept, &self.answers) {
            (Some(answer), Some(answers)) => {
                answers.store.keep(key, answer);
                self.answer_followers(Some(key), answer, schema, ended.end)
            }
            _ => {
                self.promote(key);
                Vec::new()
            }
        }
    }

    fn answer_followers(
        &mut self,
        key: Option<AskedKey>,
        answer: &KeptAnswer,
        schema: Option<&ResultSchema>,
        now: Duration,
    ) -> Vec<Ended> {
        let followers = key.and_then(|key| self.followers.remove(&key)).unwrap_or_default();
        self.parked -= followers.len();
        let mut ended = Vec::with_capacity(followers.len());
        for follower in followers {
            match follower.reuse(answer, Reused::Duplicate, schema, now) {
                Ok(row) => ended.push(row),
                // The answer was good a moment ago, so it is good for this row, too.
                Err(follower) => self.ready.push_back(follower),
            }
        }
        ended
    }

    fn promote(&mut self, key: AskedKey) {
        let Some(mut followers) = self.followers.remove(&key).filter(|rows| !rows.is_empty()) else { return };
        let next = followers.remove(0);
        self.parked -= 1;
        self.followers.insert(key, followers);
        self.ready.push_back(next);
    }

    /// Gives everything up that is not in flight.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.ready.clear();
        self.lookups.clear();
        self.followers.clear();
        self.parked = 0;
    }
}
