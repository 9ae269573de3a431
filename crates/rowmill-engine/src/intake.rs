//! The stage between the feed and the calls: waiting rows, prompts being rendered, files being read, answers being
//! looked up, and rows with the same request as another row.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use rowmill_core::asked::asked_key;
use rowmill_core::ports::{AskedKey, Attachments, KeptAnswer};
use rowmill_core::record::Reused;
use rowmill_core::validate::ResultSchema;
use rowmill_types::{Attachment, ErrorKind, Message, RowError};

use crate::feed::Taken;
use crate::prepared::{Ended, Prepared};
use crate::work::said;
use crate::{Answers, Casting, Crew, Crews, Worker};

/// The maximum number of prompts rendered ahead: their memory is not counted before they are ready.
const MOST_PROMPTS: usize = 16;

/// What was found out about a row before it may be sent.
enum Finding {
    /// Its prompt, or why there is none.
    Prompt(Prepared, Result<String, RowError>),
    /// Its row worker, or why there is none.
    Crew(Prepared, Result<Arc<Crew>, RowError>),
    /// Its files, or why they cannot be read.
    Files(Prepared, Result<Vec<Attachment>, RowError>),
    /// The stored answer to its request, if there is one.
    Answer(Prepared, Option<KeptAnswer>),
}

/// Rows that were read and are not in flight.
#[derive(Default)]
pub(crate) struct Intake {
    pub(crate) queue: VecDeque<Taken>,
    /// Rows with their prompts, in the order in which they take the memory that they need.
    pub(crate) prompted: VecDeque<Prepared>,
    /// The number of prompts being rendered.
    prompting: usize,
    /// Rows that must be sent, before any that is still in the queue.
    ready: VecDeque<Prepared>,
    /// Set if rows have row workers of their own.
    crews: Option<Arc<dyn Crews>>,
    attachments: Option<Arc<dyn Attachments>>,
    answers: Option<Answers>,
    lookups: FuturesUnordered<BoxFuture<'static, Finding>>,
    /// For each request that is in flight or looked up, the other rows with the same request.
    followers: HashMap<AskedKey, Vec<Prepared>>,
    following: usize,
}

impl Intake {
    pub(crate) fn new(worker: &Worker) -> Self {
        let crews = match &worker.casting {
            Casting::Same(_) => None,
            Casting::Each(crews) => Some(Arc::clone(crews)),
        };
        let (attachments, answers) = (worker.attachments.clone(), worker.answers.clone());
        Self { crews, attachments, answers, ..Self::default() }
    }

    /// Whether no row is left that could be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.held() == 0
    }

    /// Rows that have left the queue and are not in flight.
    pub(crate) fn held(&self) -> usize {
        self.prompted.len() + self.ready.len() + self.lookups.len() + self.following
    }

    /// Whether the prompt of another row can be rendered now.
    pub(crate) fn wants_prompts(&self) -> bool {
        self.prompting + self.prompted.len() < MOST_PROMPTS
    }

    pub(crate) fn next_ready(&mut self) -> Option<Prepared> {
        self.ready.pop_front()
    }

    /// Accepts a row whose prompt is ready; if rendering failed, the row has ended.
    pub(crate) fn receive_prompt(
        &mut self,
        mut prepared: Prepared,
        made: Result<String, RowError>,
        now: Duration,
    ) -> Option<Ended> {
        match made {
            Ok(prompt) => {
                prepared.messages.push(Message::user(prompt));
                self.prompted.push_back(prepared);
                None
            }
            Err(error) => Some(failed(prepared, error, now)),
        }
    }

    /// Accepts a row whose prompt is being rendered.
    pub(crate) fn await_prompt(
        &mut self,
        prepared: Prepared,
        making: BoxFuture<'static, Result<String, RowError>>,
    ) {
        self.prompting += 1;
        self.lookups.push(Box::pin(async move {
            let made = AssertUnwindSafe(making).catch_unwind().await;
            Finding::Prompt(prepared, made.unwrap_or_else(|panic| Err(prompt_panicked(&*panic))))
        }));
    }

    /// Accepts a row with its prompt. Returns it if it must be sent now; otherwise its row worker is determined, its
    /// files are read, its answer is looked up, or it waits for the row with the same request.
    pub(crate) fn consider(&mut self, prepared: Prepared) -> Option<Prepared> {
        let Some(crews) = &self.crews else { return self.load(prepared) };
        let crews = Arc::clone(crews);
        self.lookups.push(Box::pin(async move {
            let finding = AssertUnwindSafe(crews.of(&prepared.row)).catch_unwind();
            let crew = finding.await.unwrap_or_else(|panic| {
                let message = format!("choosing the worker panicked: {}", said(&*panic));
                Err(RowError::new(ErrorKind::Function, message))
            });
            Finding::Crew(prepared, crew)
        }));
        None
    }

    /// Reads the files of a row that has its row worker.
    fn load(&mut self, prepared: Prepared) -> Option<Prepared> {
        let Some(attachments) = &self.attachments else { return self.look_up(prepared) };
        let attachments = Arc::clone(attachments);
        self.lookups.push(Box::pin(async move {
            let loading = AssertUnwindSafe(attachments.load(&prepared.row)).catch_unwind();
            let files = loading.await.unwrap_or_else(|_| {
                Err(RowError::new(ErrorKind::Internal, "reading the files of the row panicked"))
            });
            Finding::Files(prepared, files)
        }));
        None
    }

    /// Looks up the answer for a row whose request is complete.
    fn look_up(&mut self, mut prepared: Prepared) -> Option<Prepared> {
        let Some(answers) = &self.answers else { return Some(prepared) };
        let key = asked_key(&answers.identity, &prepared.messages);
        prepared.key = Some(key);
        if let Some(followers) = self.followers.get_mut(&key) {
            followers.push(prepared);
            self.following += 1;
            return None;
        }
        self.followers.insert(key, Vec::new());
        let store = Arc::clone(&answers.store);
        self.lookups.push(Box::pin(async move {
            let found = store.find(key).await;
            Finding::Answer(prepared, found)
        }));
        None
    }

    pub(crate) fn is_looking(&self) -> bool {
        !self.lookups.is_empty()
    }

    /// Waits for the next finding about a row. Rows whose answer was found, and rows whose files cannot be sent, have
    /// ended.
    pub(crate) async fn looked_up(
        &mut self,
        schema: Option<&ResultSchema>,
        now: impl Fn() -> Duration,
    ) -> Vec<Ended> {
        match self.lookups.next().await {
            Some(Finding::Prompt(prepared, made)) => {
                self.prompting -= 1;
                self.receive_prompt(prepared, made, now()).into_iter().collect()
            }
            Some(Finding::Crew(prepared, crew)) => self.manned(prepared, crew, now()),
            Some(Finding::Files(prepared, files)) => self.loaded(prepared, files, now()),
            Some(Finding::Answer(prepared, found)) => self.found(prepared, found, schema, now()),
            None => Vec::new(),
        }
    }

    fn manned(
        &mut self,
        mut prepared: Prepared,
        crew: Result<Arc<Crew>, RowError>,
        now: Duration,
    ) -> Vec<Ended> {
        match crew {
            Ok(crew) => {
                prepared.crew = Some(crew);
                let asked_now = self.load(prepared);
                self.ready.extend(asked_now);
                Vec::new()
            }
            Err(error) => vec![failed(prepared, error, now)],
        }
    }

    fn loaded(
        &mut self,
        mut prepared: Prepared,
        files: Result<Vec<Attachment>, RowError>,
        now: Duration,
    ) -> Vec<Ended> {
        match files {
            Ok(files) => {
                if let Some(prompt) = prepared.messages.first_mut() {
                    prompt.attachments = files;
                }
                let asked_now = self.look_up(prepared);
                self.ready.extend(asked_now);
                Vec::new()
            }
            Err(error) => vec![failed(prepared, error, now)],
        }
    }

    fn found(
        &mut self,
        prepared: Prepared,
        found: Option<KeptAnswer>,
        schema: Option<&ResultSchema>,
        now: Duration,
    ) -> Vec<Ended> {
        let Some((answer, answers)) = found.as_ref().zip(self.answers.as_ref()) else {
            self.ready.push_back(prepared);
            return Vec::new();
        };
        let (key, kept_before) = (prepared.key, answers.kept_before);
        match prepared.reuse(answer, kept_before, schema, now) {
            Ok(ended) => {
                let mut all = vec![ended];
                all.extend(self.answer_followers(key, answer, schema, now));
                all
            }
            Err(prepared) => {
                self.ready.push_back(*prepared);
                Vec::new()
            }
        }
    }

    /// A row that was sent has ended: its answer is kept and given to the rows with the same request. If it failed, the
    /// next of them is sent.
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
        self.following -= followers.len();
        let mut ended = Vec::with_capacity(followers.len());
        for follower in followers {
            match follower.reuse(answer, Reused::Duplicate, schema, now) {
                Ok(row) => ended.push(row),
                // The answer was valid a moment ago, so it is valid for this row, too.
                Err(follower) => self.ready.push_back(*follower),
            }
        }
        ended
    }

    /// Sends the next row with this request: the row that they waited for has no answer for them.
    pub(crate) fn promote(&mut self, key: AskedKey) {
        let Some(mut followers) = self.followers.remove(&key).filter(|rows| !rows.is_empty()) else { return };
        let next = followers.remove(0);
        self.following -= 1;
        self.followers.insert(key, followers);
        self.ready.push_back(next);
    }

    /// Drops all rows that are not in flight.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.prompted.clear();
        self.prompting = 0;
        self.ready.clear();
        self.lookups.clear();
        self.followers.clear();
        self.following = 0;
    }
}

/// The error of a row whose prompt panicked.
pub(crate) fn prompt_panicked(panic: &(dyn Any + Send)) -> RowError {
    RowError::new(ErrorKind::Prompt, format!("the prompt panicked: {}", said(panic)))
}

/// A row that failed before anything was sent for it.
fn failed(prepared: Prepared, error: RowError, now: Duration) -> Ended {
    let Prepared { ordinal, id, row, .. } = prepared;
    Ended::unasked(ordinal, id, row.number(), Some(row), Err(error), now)
}
