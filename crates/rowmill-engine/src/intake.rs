//! The stage between the feed and the calls: waiting rows, prompts being rendered, files being read, answers being
//! looked up, and rows with the same request as another row.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesOrdered, FuturesUnordered, select};
use futures_util::{FutureExt, StreamExt};
use rowmill_core::answer_key::answer_key;
use rowmill_core::ports::{AnswerKey, AttachmentLoader, StoredAnswer};
use rowmill_core::record::ReusedAnswerSource;
use rowmill_core::validate::ResultSchema;
use rowmill_types::{Attachment, Message, RowError, RowErrorKind};

use crate::feed::TakenRow;
use crate::prepared::{EndedRow, NamedInputRow, PreparedRow};
use crate::row_work::panic_message;
use crate::{AnswerCache, RowExecutionSetup, RowWorker, RowWorkerSource, WorkerAssignment};

/// The maximum number of prompts rendered ahead: their memory is not counted before they are ready.
const MOST_PROMPTS: usize = 16;

/// What was found out about a row before it may be sent.
enum LookupResult {
    /// Its prompt, or why there is none.
    Prompt(PreparedRow, Result<String, RowError>),
    /// Its row worker, or why there is none.
    Worker(PreparedRow, Result<Arc<RowWorker>, RowError>),
    /// Its files, or why they cannot be read.
    Files(PreparedRow, Result<Vec<Attachment>, RowError>),
    /// The stored answer to its request, if there is one.
    Answer(PreparedRow, Option<StoredAnswer>),
}

/// Rows that were read and are not in flight.
#[derive(Default)]
pub(crate) struct RowIntake {
    pub(crate) queue: VecDeque<TakenRow>,
    /// Rows with their prompts, in the order in which they take the memory that they need.
    pub(crate) prompted: VecDeque<PreparedRow>,
    /// The number of prompts being rendered.
    prompting: usize,
    /// Rows that must be sent, before any that is still in the queue.
    ready: VecDeque<PreparedRow>,
    /// Set if rows have row workers of their own.
    row_workers: Option<Arc<dyn RowWorkerSource>>,
    attachments: Option<Arc<dyn AttachmentLoader>>,
    answers: Option<AnswerCache>,
    lookups: FuturesUnordered<BoxFuture<'static, LookupResult>>,
    /// What is found out about rows in their order: if answers are reused, the first row with a request is the one that
    /// is sent, however long its files take to be read. In a later pass, it is the same one.
    ordered: FuturesOrdered<BoxFuture<'static, LookupResult>>,
    /// For each request that is in flight or looked up, the other rows with the same request.
    followers: HashMap<AnswerKey, Vec<PreparedRow>>,
    following: usize,
    /// Requests of rows that are parked, with what these wait for.
    parked_requests: HashMap<AnswerKey, Vec<String>>,
    /// Rows with such a request, which are to be parked, too.
    parked_duplicates: Vec<(PreparedRow, Vec<String>)>,
}

impl RowIntake {
    pub(crate) fn new(worker: &RowExecutionSetup) -> Self {
        let row_workers = match &worker.assignment {
            WorkerAssignment::Shared(_) => None,
            WorkerAssignment::PerRow(row_workers) => Some(Arc::clone(row_workers)),
        };
        let (attachments, answers) = (worker.attachments.clone(), worker.answer_cache.clone());
        Self { row_workers, attachments, answers, ..Self::default() }
    }

    /// Whether no row is left that could be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.held_rows() == 0
    }

    /// Rows that have left the queue and are not in flight.
    pub(crate) fn held_rows(&self) -> usize {
        self.prompted.len() + self.ready.len() + self.lookups.len() + self.ordered.len() + self.following
    }

    /// Whether the prompt of another row can be rendered now.
    pub(crate) fn wants_prompts(&self) -> bool {
        self.prompting + self.prompted.len() < MOST_PROMPTS
    }

    pub(crate) fn next_ready(&mut self) -> Option<PreparedRow> {
        self.ready.pop_front()
    }

    /// Accepts a row whose prompt is ready; if rendering failed, the row has ended.
    pub(crate) fn receive_prompt(
        &mut self,
        mut prepared: PreparedRow,
        made: Result<String, RowError>,
        now: Duration,
    ) -> Option<EndedRow> {
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
        prepared: PreparedRow,
        making: BoxFuture<'static, Result<String, RowError>>,
    ) {
        self.prompting += 1;
        self.lookups.push(Box::pin(async move {
            let made = AssertUnwindSafe(making).catch_unwind().await;
            LookupResult::Prompt(prepared, made.unwrap_or_else(|panic| Err(prompt_panicked(&*panic))))
        }));
    }

    /// Accepts a row with its prompt. Returns it if it must be sent now; otherwise its row worker is determined, its
    /// files are read, its answer is looked up, or it waits for the row with the same request.
    pub(crate) fn accept(&mut self, prepared: PreparedRow) -> Option<PreparedRow> {
        let Some(row_workers) = &self.row_workers else { return self.load(prepared) };
        let row_workers = Arc::clone(row_workers);
        self.find_out(Box::pin(async move {
            let finding = AssertUnwindSafe(row_workers.worker_for_row(&prepared.row)).catch_unwind();
            let row_worker = finding.await.unwrap_or_else(|panic| {
                let message = format!("choosing the worker panicked: {}", panic_message(&*panic));
                Err(RowError::new(RowErrorKind::Function, message))
            });
            LookupResult::Worker(prepared, row_worker)
        }));
        None
    }

    /// Reads the files of a row that has its row worker.
    fn load(&mut self, prepared: PreparedRow) -> Option<PreparedRow> {
        let Some(attachments) = &self.attachments else { return self.look_up(prepared) };
        let attachments = Arc::clone(attachments);
        self.find_out(Box::pin(async move {
            let loading = AssertUnwindSafe(attachments.load(&prepared.row)).catch_unwind();
            let files = loading.await.unwrap_or_else(|_| {
                Err(RowError::new(RowErrorKind::Internal, "reading the files of the row panicked"))
            });
            LookupResult::Files(prepared, files)
        }));
        None
    }

    /// Finds out what is part of a row's request.
    fn find_out(&mut self, finding: BoxFuture<'static, LookupResult>) {
        match self.answers {
            Some(_) => self.ordered.push_back(finding),
            None => self.lookups.push(finding),
        }
    }

    /// Looks up the answer for a row whose request is complete.
    fn look_up(&mut self, mut prepared: PreparedRow) -> Option<PreparedRow> {
        let Some(answers) = &self.answers else { return Some(prepared) };
        let key = answer_key(&answers.identity, &prepared.messages);
        prepared.key = Some(key);
        if let Some(waits_for) = self.parked_requests.get(&key) {
            self.parked_duplicates.push((prepared, waits_for.clone()));
            return None;
        }
        if let Some(followers) = self.followers.get_mut(&key) {
            followers.push(prepared);
            self.following += 1;
            return None;
        }
        self.followers.insert(key, Vec::new());
        let store = Arc::clone(&answers.store);
        self.lookups.push(Box::pin(async move {
            let found = store.find(key).await;
            LookupResult::Answer(prepared, found)
        }));
        None
    }

    pub(crate) fn has_lookups(&self) -> bool {
        !self.lookups.is_empty() || !self.ordered.is_empty()
    }

    /// Waits for the next finding about a row. Rows whose answer was found, and rows whose files cannot be sent, have
    /// ended.
    pub(crate) async fn next_lookup(
        &mut self,
        schema: Option<&ResultSchema>,
        now: impl Fn() -> Duration,
    ) -> Vec<EndedRow> {
        match select(&mut self.lookups, &mut self.ordered).next().await {
            Some(LookupResult::Prompt(prepared, made)) => {
                self.prompting -= 1;
                self.receive_prompt(prepared, made, now()).into_iter().collect()
            }
            Some(LookupResult::Worker(prepared, row_worker)) => self.manned(prepared, row_worker, now()),
            Some(LookupResult::Files(prepared, files)) => self.loaded(prepared, files, now()),
            Some(LookupResult::Answer(prepared, found)) => self.found(prepared, found, schema, now()),
            None => Vec::new(),
        }
    }

    fn manned(
        &mut self,
        mut prepared: PreparedRow,
        row_worker: Result<Arc<RowWorker>, RowError>,
        now: Duration,
    ) -> Vec<EndedRow> {
        match row_worker {
            Ok(row_worker) => {
                prepared.row_worker = Some(row_worker);
                let asked_now = self.load(prepared);
                self.ready.extend(asked_now);
                Vec::new()
            }
            Err(error) => vec![failed(prepared, error, now)],
        }
    }

    fn loaded(
        &mut self,
        mut prepared: PreparedRow,
        files: Result<Vec<Attachment>, RowError>,
        now: Duration,
    ) -> Vec<EndedRow> {
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
        prepared: PreparedRow,
        found: Option<StoredAnswer>,
        schema: Option<&ResultSchema>,
        now: Duration,
    ) -> Vec<EndedRow> {
        let Some((answer, answers)) = found.as_ref().zip(self.answers.as_ref()) else {
            self.ready.push_back(prepared);
            return Vec::new();
        };
        let (key, kept_before) = (prepared.key, answers.kept_before);
        match prepared.end_with_stored_answer(answer, kept_before, schema, now) {
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
    pub(crate) fn resolve_duplicates(
        &mut self,
        ended: &EndedRow,
        schema: Option<&ResultSchema>,
    ) -> Vec<EndedRow> {
        let Some(key) = ended.key else { return Vec::new() };
        match (&ended.kept, &self.answers) {
            (Some(answer), Some(answers)) => {
                answers.store.store(key, answer);
                self.answer_followers(Some(key), answer, schema, ended.end)
            }
            _ => {
                self.promote_duplicate(key);
                Vec::new()
            }
        }
    }

    fn answer_followers(
        &mut self,
        key: Option<AnswerKey>,
        answer: &StoredAnswer,
        schema: Option<&ResultSchema>,
        now: Duration,
    ) -> Vec<EndedRow> {
        let followers = key.and_then(|key| self.followers.remove(&key)).unwrap_or_default();
        self.following -= followers.len();
        let mut ended = Vec::with_capacity(followers.len());
        for follower in followers {
            match follower.end_with_stored_answer(answer, ReusedAnswerSource::Duplicate, schema, now) {
                Ok(row) => ended.push(row),
                // The answer was valid a moment ago, so it is valid for this row, too.
                Err(follower) => self.ready.push_back(*follower),
            }
        }
        ended
    }

    /// Sends the next row with this request: the row that they waited for has no answer for them.
    pub(crate) fn promote_duplicate(&mut self, key: AnswerKey) {
        let Some(mut followers) = self.followers.remove(&key).filter(|rows| !rows.is_empty()) else { return };
        let next = followers.remove(0);
        self.following -= 1;
        self.followers.insert(key, followers);
        self.ready.push_back(next);
    }

    /// A row is parked. Returns the rows with the same request so far, which wait for the same; later ones are returned
    /// by [`RowIntake::take_parked_duplicates`].
    pub(crate) fn park_duplicates(&mut self, key: AnswerKey, waits_for: &[String]) -> Vec<PreparedRow> {
        let followers = self.followers.remove(&key).unwrap_or_default();
        self.following -= followers.len();
        self.parked_requests.insert(key, waits_for.to_vec());
        followers
    }

    /// Rows whose request is one of a parked row, with what they wait for.
    pub(crate) fn take_parked_duplicates(&mut self) -> Vec<(PreparedRow, Vec<String>)> {
        std::mem::take(&mut self.parked_duplicates)
    }

    /// Drops all rows that are not in flight.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.prompted.clear();
        self.prompting = 0;
        self.ready.clear();
        self.lookups.clear();
        self.ordered = FuturesOrdered::new();
        self.followers.clear();
        self.following = 0;
    }
}

/// The error of a row whose prompt panicked.
pub(crate) fn prompt_panicked(panic: &(dyn Any + Send)) -> RowError {
    RowError::new(RowErrorKind::Prompt, format!("the prompt panicked: {}", panic_message(panic)))
}

/// A row that failed before anything was sent for it.
fn failed(prepared: PreparedRow, error: RowError, now: Duration) -> EndedRow {
    let PreparedRow { ordinal, id, row, .. } = prepared;
    EndedRow::without_call(NamedInputRow::of(ordinal, id, row), Err(error), now)
}
