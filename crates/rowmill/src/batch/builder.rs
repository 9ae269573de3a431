//! The batch builder: items, prompts, the worker, and how results are made from answers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use rowmill_core::ports::RowSource;
use rowmill_types::Row;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::FunctionFailure;
use super::function_model::WorkFn;
use super::item::AnsweredItem;
use super::items::BatchItems;
use super::policy::{OnFailure, StopAtFirstFailure};
use super::settings::BatchSettings;
use super::worker::Worker;

/// Makes the prompt of an item.
pub(super) type PromptFn<T> = Arc<dyn Fn(&T) -> Result<String, FunctionFailure> + Send + Sync>;
/// Makes the id of an item.
pub(super) type IdFn<T> = Arc<dyn Fn(&T) -> String + Send + Sync>;
/// Makes a result from an answer.
pub(super) type OutputFn<T, A, U> =
    Arc<dyn Fn(AnsweredItem<T, A>) -> Result<U, FunctionFailure> + Send + Sync>;
/// Chooses the worker for an item.
pub(super) type ChooseFn<T> = Arc<dyn Fn(usize, &T) -> Result<Worker, FunctionFailure> + Send + Sync>;
/// Decodes an answer from JSON, and encodes it.
pub(super) type DecodeFn<A> = fn(&str) -> Result<A, String>;
pub(super) type EncodeFn<A> = fn(&A) -> Result<String, String>;

/// What works on items.
pub(super) enum WorkerChoice<T, A> {
    /// No worker was set.
    NotChosen,
    /// The same worker for all items.
    Shared(Worker),
    /// A worker for each item.
    PerItem(ChooseFn<T>),
    /// A function of the program instead of a worker.
    Function(WorkFn<T, A>),
}

/// The parts of a batch that depend on the types of answers and results.
struct AnswerTypes<T, A, U> {
    chosen: WorkerChoice<T, A>,
    decode: Option<DecodeFn<A>>,
    codec: Option<(EncodeFn<A>, DecodeFn<A>)>,
    schema: Option<serde_json::Value>,
    output: OutputFn<T, A, U>,
}

impl<T, A> WorkerChoice<T, A> {
    /// The same choice for another type of answers; a function is dropped, because it returns the old
    /// type.
    fn without_function<B>(self) -> WorkerChoice<T, B> {
        match self {
            Self::Shared(worker) => WorkerChoice::Shared(worker),
            Self::PerItem(choose) => WorkerChoice::PerItem(choose),
            Self::NotChosen | Self::Function(_) => WorkerChoice::NotChosen,
        }
    }
}

/// A prompt: a text, or a `Result` with a text.
pub trait IntoPrompt {
    /// Returns the prompt.
    ///
    /// # Errors
    ///
    /// The prompt could not be made.
    fn into_prompt(self) -> Result<String, FunctionFailure>;
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<String, FunctionFailure> {
        Ok(self)
    }
}

impl IntoPrompt for &str {
    fn into_prompt(self) -> Result<String, FunctionFailure> {
        Ok(self.to_owned())
    }
}

impl<S: Into<String>, E: Into<FunctionFailure>> IntoPrompt for Result<S, E> {
    fn into_prompt(self) -> Result<String, FunctionFailure> {
        self.map(Into::into).map_err(Into::into)
    }
}

/// A batch: a list of items, a worker, and results in the order of the items.
///
/// `T` is the type of the items, `A` of the answers and `U` of the results; `P` decides how failures
/// are handled. The settings can be given in any order, with two exceptions: [`Batch::answer_type`] and
/// [`Batch::worker_fn`] decide the type of answers and come before [`Batch::map_answers`].
pub struct Batch<T, A = String, U = A, P = StopAtFirstFailure> {
    pub(super) items: BatchItems<T>,
    pub(super) prompt: Option<PromptFn<T>>,
    pub(super) id: Option<IdFn<T>>,
    pub(super) chosen: WorkerChoice<T, A>,
    /// How to parse answers of models; `None` if a function returns them.
    pub(super) decode: Option<DecodeFn<A>>,
    /// How to store and load answers, if they are stored.
    pub(super) codec: Option<(EncodeFn<A>, DecodeFn<A>)>,
    pub(super) schema: Option<serde_json::Value>,
    pub(super) output: OutputFn<T, A, U>,
    pub(super) settings: BatchSettings,
    pub(super) policy: PhantomData<fn() -> P>,
}

impl<T, A, U, P> fmt::Debug for Batch<T, A, U, P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Batch")
            .field("items", &self.items)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Batch<T> {
    /// Creates a batch over a list or anything else that can be iterated over.
    ///
    /// The iterator is read on other threads, a few hundred items ahead; a source that yields its next
    /// item only after the result of an earlier one needs [`Batch::over_stream`]. If its `size_hint`
    /// has an upper bound, the threads belong to the runtime, which waits for them when it shuts down;
    /// other iterators may wait for their next item forever.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let results = Batch::over(1..=3).prompt(|n| format!("number {n}")).worker("passthrough").run_blocking()?;
    /// assert_eq!(results.items, ["number 1", "number 2", "number 3"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn over<I>(items: I) -> Self
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: Send + 'static,
    {
        Self::new(BatchItems::Iterator(Box::new(items.into_iter())))
    }

    /// Creates a batch over a stream, which is polled only while there is room for more items.
    ///
    /// ```
    /// use futures_util::stream;
    /// use rowmill::Batch;
    ///
    /// let items = stream::iter(["a", "b"]);
    /// let results = Batch::over_stream(items).prompt(|item| *item).worker("passthrough").run_blocking()?;
    /// assert_eq!(results.items, ["a", "b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn over_stream<S>(items: S) -> Self
    where
        S: Stream<Item = T> + Send + 'static,
    {
        Self::new(BatchItems::Stream(items.boxed()))
    }

    fn new(items: BatchItems<T>) -> Self {
        Self {
            items,
            prompt: None,
            id: None,
            chosen: WorkerChoice::NotChosen,
            decode: Some(json::<String>),
            codec: None,
            schema: None,
            output: Arc::new(|done| Ok(done.answer)),
            settings: BatchSettings::default(),
            policy: PhantomData,
        }
    }
}

impl Batch<Row> {
    /// Creates a batch over the rows of a dataset, or of your own source. A record that is not a row
    /// becomes a failed item.
    pub fn over_rows(source: impl RowSource + 'static) -> Self {
        Self::new(BatchItems::Rows(Box::new(source), |row| row))
    }
}

impl<T: Send + Sync + 'static, P> Batch<T, String, String, P> {
    /// Requests answers of a type: its JSON Schema is sent with every request, an answer that violates
    /// it is sent back for correction up to [`Batch::repairs`] times, and the answers are values of
    /// that type.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Verdict {
    ///     is_spam: bool,
    /// }
    ///
    /// let verdicts = Batch::over(["win a mill"]).prompt(|mail| *mail).answer_type::<Verdict>().worker("simulated");
    /// let spam = verdicts.map_answers(|done| done.answer.is_spam).run_blocking()?;
    /// assert_eq!(spam.items.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn answer_type<B>(self) -> Batch<T, B, B, P>
    where
        B: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<B>();
        Batch {
            schema: Some(schema.to_value()),
            ..self.with_answer_type(Some(json::<B>), Arc::new(|done: AnsweredItem<T, B>| Ok(done.answer)))
        }
    }
}

impl<T: Send + Sync + 'static, A: Send + 'static, P> Batch<T, A, A, P> {
    /// Makes the result of an item from its answer.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let batch = Batch::over(["a", "b"]).prompt(|item| *item).worker("passthrough");
    /// let results = batch.map_answers(|done| format!("{}: {}", done.index, done.answer)).run_blocking()?;
    /// assert_eq!(results.items, ["0: a", "1: b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_answers<V, F>(self, output: F) -> Batch<T, A, V, P>
    where
        V: Send + 'static,
        F: Fn(AnsweredItem<T, A>) -> V + Send + Sync + 'static,
    {
        self.try_map_answers(move |done| Ok(output(done)))
    }

    /// Makes the result of an item from its answer, or returns why it cannot. In that case the item has
    /// failed, but a ledger keeps the answer, so that nothing is paid for twice.
    ///
    /// ```
    /// use rowmill::{Batch, ReturnNone};
    ///
    /// let batch = Batch::over(["1", "one"]).prompt(|item| *item).worker("passthrough");
    /// let results = batch.try_map_answers(|done| Ok(done.answer.parse::<u8>()?)).on_failure(ReturnNone).run_blocking()?;
    /// assert_eq!(results.items, [Some(1), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_map_answers<V, F>(self, output: F) -> Batch<T, A, V, P>
    where
        V: Send + 'static,
        F: Fn(AnsweredItem<T, A>) -> Result<V, FunctionFailure> + Send + Sync + 'static,
    {
        self.remade(|before| AnswerTypes {
            chosen: before.chosen,
            decode: before.decode,
            codec: before.codec,
            schema: before.schema,
            output: Arc::new(output),
        })
    }
}

impl<T: Send + Sync + 'static, A, U, P> Batch<T, A, U, P> {
    /// Makes the prompt of an item. The function may return a text or a `Result`; if it returns an
    /// error, the item has failed and nothing is sent for it. A slow function delays no other item: it
    /// is called on other threads until it has proven to be fast.
    ///
    /// ```
    /// use rowmill::{Batch, ReturnNone};
    ///
    /// let batch = Batch::over([&b"text"[..], &[0xff]]).worker("passthrough").on_failure(ReturnNone);
    /// let results = batch.prompt(|bytes| std::str::from_utf8(bytes)).run_blocking()?;
    /// assert_eq!(results.items, [Some("text".to_owned()), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prompt<R, F>(mut self, prompt: F) -> Self
    where
        R: IntoPrompt,
        F: Fn(&T) -> R + Send + Sync + 'static,
    {
        self.prompt = Some(Arc::new(move |item| prompt(item).into_prompt()));
        self
    }

    /// Gives items ids, so that a resume recognizes them even if they have moved. Ids must be unique:
    /// an item with the id of an earlier one has failed. Without ids, an item is recognized by its
    /// index and its prompt.
    pub fn id<F>(mut self, id: F) -> Self
    where
        F: Fn(&T) -> String + Send + Sync + 'static,
    {
        self.id = Some(Arc::new(id));
        self
    }

    /// Sets the worker of all items: a model string, an agent card, or your own model. Every item gets
    /// a clone of it with a fresh history; connections, limits and tools are shared.
    pub fn worker(mut self, worker: impl Into<Worker>) -> Self {
        self.chosen = WorkerChoice::Shared(worker.into());
        self
    }

    /// Chooses a worker for every item by its index and value. An error is that item's failure. Clones
    /// of one worker are set up once and share the processes and connections they start; a worker that
    /// is created for a single item is set up for it and closed when the item has ended. A slow
    /// function delays no other item, as with [`Batch::prompt`].
    ///
    /// ```
    /// use rowmill::{Batch, FunctionFailure, ReturnNone, Worker};
    ///
    /// let results = Batch::over(["a", "?"])
    ///     .prompt(|item| *item)
    ///     .worker_for(|_index, item| match *item {
    ///         "?" => Err(FunctionFailure::new("nobody knows")),
    ///         _ => Ok(Worker::from_model_name("passthrough")),
    ///     })
    ///     .on_failure(ReturnNone)
    ///     .run_blocking()?;
    /// assert_eq!(results.items, [Some("a".to_owned()), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker_for<F>(mut self, choose: F) -> Self
    where
        F: Fn(usize, &T) -> Result<Worker, FunctionFailure> + Send + Sync + 'static,
    {
        self.chosen = WorkerChoice::PerItem(Arc::new(choose));
        self
    }

    /// Sets how failed items are handled: [`StopAtFirstFailure`] (the default), [`ReturnNone`](super::ReturnNone) or
    /// [`ReturnError`](super::ReturnError).
    pub fn on_failure<Q: OnFailure>(self, _: Q) -> Batch<T, A, U, Q> {
        self.remade(|same| same)
    }

    /// Writes every answer to a ledger on disk as soon as it arrives, so that nothing that was paid for
    /// is lost, whatever happens to the process.
    pub fn ledger(mut self, folder: super::ledger::LedgerOptions) -> Self
    where
        A: Serialize + DeserializeOwned,
    {
        self.codec = Some((encoded::<A>, json::<A>));
        self.settings.ledger = Some(folder);
        self
    }

    /// The same batch with another type of answers.
    pub(super) fn with_answer_type<B, V>(
        self,
        decode: Option<DecodeFn<B>>,
        output: OutputFn<T, B, V>,
    ) -> Batch<T, B, V, P> {
        self.remade(|before| AnswerTypes {
            chosen: before.chosen.without_function(),
            decode,
            codec: None,
            schema: None,
            output,
        })
    }

    /// The same batch with other types of answers, results or failure handling.
    fn remade<B, V, Q>(
        self,
        make: impl FnOnce(AnswerTypes<T, A, U>) -> AnswerTypes<T, B, V>,
    ) -> Batch<T, B, V, Q> {
        let Self { items, prompt, id, chosen, decode, codec, schema, output, settings, .. } = self;
        let made = make(AnswerTypes { chosen, decode, codec, schema, output });
        let AnswerTypes { chosen, decode, codec, schema, output } = made;
        Batch { items, prompt, id, chosen, decode, codec, schema, output, settings, policy: PhantomData }
    }
}

/// Parses an answer of any type.
fn json<A: DeserializeOwned>(json: &str) -> Result<A, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn encoded<A: Serialize>(answer: &A) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}
