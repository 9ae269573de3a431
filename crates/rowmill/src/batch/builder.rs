//! The builder: items, what is asked about them, who answers, and what is made of answers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use rowmill_core::ports::RowSource;
use rowmill_types::Row;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::Failure;
use super::function::WorkFn;
use super::item::Done;
use super::items::Items;
use super::policy::{OnFailure, Raise};
use super::settings::Settings;
use super::worker::Worker;

/// Makes a prompt of an item.
pub(super) type PromptFn<T> = Arc<dyn Fn(&T) -> Result<String, Failure> + Send + Sync>;
/// Names an item.
pub(super) type IdFn<T> = Arc<dyn Fn(&T) -> String + Send + Sync>;
/// Makes a result of an answer.
pub(super) type OutputFn<T, A, U> = Arc<dyn Fn(Done<T, A>) -> Result<U, Failure> + Send + Sync>;
/// Chooses the worker of an item.
pub(super) type ChooseFn<T> = Arc<dyn Fn(usize, &T) -> Result<Worker, Failure> + Send + Sync>;
/// Reads an answer from JSON, and writes it.
pub(super) type Decode<A> = fn(&str) -> Result<A, String>;
pub(super) type Encode<A> = fn(&A) -> Result<String, String>;

/// Who works on items.
pub(super) enum Chosen<T, A> {
    /// Nobody was named.
    Nobody,
    /// The same worker for all.
    Same(Worker),
    /// One for each.
    Each(ChooseFn<T>),
    /// A function of the program.
    Function(WorkFn<T, A>),
}

/// What of a batch depends on the types of answers and results.
struct Answering<T, A, U> {
    chosen: Chosen<T, A>,
    decode: Option<Decode<A>>,
    codec: Option<(Encode<A>, Decode<A>)>,
    schema: Option<serde_json::Value>,
    output: OutputFn<T, A, U>,
}

impl<T, A> Chosen<T, A> {
    /// The same where answers are of another type, which a function would not give.
    fn without_function<B>(self) -> Chosen<T, B> {
        match self {
            Self::Same(worker) => Chosen::Same(worker),
            Self::Each(choose) => Chosen::Each(choose),
            Self::Nobody | Self::Function(_) => Chosen::Nobody,
        }
    }
}

/// What can be a prompt: a text, or a text or a failure.
pub trait IntoPrompt {
    /// The prompt.
    ///
    /// # Errors
    ///
    /// It could not be made.
    fn into_prompt(self) -> Result<String, Failure>;
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<String, Failure> {
        Ok(self)
    }
}

impl IntoPrompt for &str {
    fn into_prompt(self) -> Result<String, Failure> {
        Ok(self.to_owned())
    }
}

impl<S: Into<String>, E: Into<Failure>> IntoPrompt for Result<S, E> {
    fn into_prompt(self) -> Result<String, Failure> {
        self.map(Into::into).map_err(Into::into)
    }
}

/// A list of items, a worker, and results in order.
///
/// `T` is the type of items, `A` that of answers, `U` that of results, and `P` what happens to
/// failures. The settings can be given in any order, with two exceptions: [`Batch::typed`] and
/// [`Batch::worker_fn`] decide the type of answers and come before [`Batch::output`].
pub struct Batch<T, A = String, U = A, P = Raise> {
    pub(super) items: Items<T>,
    pub(super) prompt: Option<PromptFn<T>>,
    pub(super) id: Option<IdFn<T>>,
    pub(super) chosen: Chosen<T, A>,
    /// How answers of models are read; `None` where a function gives them.
    pub(super) decode: Option<Decode<A>>,
    /// How answers are kept, where they are.
    pub(super) codec: Option<(Encode<A>, Decode<A>)>,
    pub(super) schema: Option<serde_json::Value>,
    pub(super) output: OutputFn<T, A, U>,
    pub(super) settings: Settings,
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
    /// A batch over a list or anything else that can be iterated over.
    ///
    /// The iterator is asked on other threads, some hundred items ahead; a source that gives
    /// its next item only after the result of an earlier one belongs into [`Batch::over_stream`].
    /// Where its `size_hint` has an upper bound, they are threads of the runtime, which waits for
    /// them when it ends; others may wait for their next item for ever.
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
        Self::new(Items::Iterator(Box::new(items.into_iter())))
    }

    /// A batch over a stream, which is asked only while there is room for its items.
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
        Self::new(Items::Stream(items.boxed()))
    }

    fn new(items: Items<T>) -> Self {
        Self {
            items,
            prompt: None,
            id: None,
            chosen: Chosen::Nobody,
            decode: Some(json::<String>),
            codec: None,
            schema: None,
            output: Arc::new(|done| Ok(done.answer)),
            settings: Settings::default(),
            policy: PhantomData,
        }
    }
}

impl Batch<Row> {
    /// A batch over the rows of a dataset, or of an own source. A record that is no row is an
    /// item that failed.
    pub fn over_rows(source: impl RowSource + 'static) -> Self {
        Self::new(Items::Rows(Box::new(source), |row| row))
    }
}

impl<T: Send + Sync + 'static, P> Batch<T, String, String, P> {
    /// Asks for answers of a type: its JSON Schema goes with every request, answers that break
    /// it are corrected as often as [`Batch::repairs`] says, and what comes is of that type.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Verdict {
    ///     is_spam: bool,
    /// }
    ///
    /// let verdicts = Batch::over(["win a mill"]).prompt(|mail| *mail).typed::<Verdict>().worker("simulated");
    /// let spam = verdicts.output(|done| done.answer.is_spam).run_blocking()?;
    /// assert_eq!(spam.items.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn typed<B>(self) -> Batch<T, B, B, P>
    where
        B: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<B>();
        Batch {
            schema: Some(schema.to_value()),
            ..self.with_answers(Some(json::<B>), Arc::new(|done: Done<T, B>| Ok(done.answer)))
        }
    }
}

impl<T: Send + Sync + 'static, A: Send + 'static, P> Batch<T, A, A, P> {
    /// Makes the result of an item out of its answer.
    ///
    /// ```
    /// use rowmill::Batch;
    ///
    /// let batch = Batch::over(["a", "b"]).prompt(|item| *item).worker("passthrough");
    /// let results = batch.output(|done| format!("{}: {}", done.index, done.answer)).run_blocking()?;
    /// assert_eq!(results.items, ["0: a", "1: b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn output<V, F>(self, output: F) -> Batch<T, A, V, P>
    where
        V: Send + 'static,
        F: Fn(Done<T, A>) -> V + Send + Sync + 'static,
    {
        self.try_output(move |done| Ok(output(done)))
    }

    /// Makes the result of an item out of its answer, or says why that cannot be done: then the
    /// item has failed, and a ledger keeps the answer, so that nothing is paid for twice.
    ///
    /// ```
    /// use rowmill::{Batch, ReturnNone};
    ///
    /// let batch = Batch::over(["1", "one"]).prompt(|item| *item).worker("passthrough");
    /// let results = batch.try_output(|done| Ok(done.answer.parse::<u8>()?)).on_failure(ReturnNone).run_blocking()?;
    /// assert_eq!(results.items, [Some(1), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_output<V, F>(self, output: F) -> Batch<T, A, V, P>
    where
        V: Send + 'static,
        F: Fn(Done<T, A>) -> Result<V, Failure> + Send + Sync + 'static,
    {
        self.remade(|before| Answering {
            chosen: before.chosen,
            decode: before.decode,
            codec: before.codec,
            schema: before.schema,
            output: Arc::new(output),
        })
    }
}

impl<T: Send + Sync + 'static, A, U, P> Batch<T, A, U, P> {
    /// Makes the prompt of an item. It may give a text or a `Result`: an item whose prompt cannot
    /// be made has failed, and nothing is sent for it. One that takes long holds up no other item: it is
    /// called on other threads until it has shown to be brief.
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

    /// Names items, so that a resume knows them again although they have moved. Names must be
    /// unique: an item with the name of an earlier one has failed. Without it an item is known by
    /// its place and its prompt.
    pub fn id<F>(mut self, id: F) -> Self
    where
        F: Fn(&T) -> String + Send + Sync + 'static,
    {
        self.id = Some(Arc::new(id));
        self
    }

    /// The worker of all items: a model string, an agent card, an own model. Every item gets a
    /// clone of it with a fresh history; connections, limits and tools are shared.
    pub fn worker(mut self, worker: impl Into<Worker>) -> Self {
        self.chosen = Chosen::Same(worker.into());
        self
    }

    /// A worker for every item, by its place and itself. A failure is that item's. Clones of one
    /// worker are made ready once and share what they have started; a worker that is made anew for
    /// an item is made ready for it and closed when it has ended. One that takes long holds up no other
    /// item, as with [`Batch::prompt`].
    ///
    /// ```
    /// use rowmill::{Batch, Failure, ReturnNone, Worker};
    ///
    /// let results = Batch::over(["a", "?"])
    ///     .prompt(|item| *item)
    ///     .worker_for(|_index, item| match *item {
    ///         "?" => Err(Failure::new("nobody knows")),
    ///         _ => Ok(Worker::model("passthrough")),
    ///     })
    ///     .on_failure(ReturnNone)
    ///     .run_blocking()?;
    /// assert_eq!(results.items, [Some("a".to_owned()), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker_for<F>(mut self, choose: F) -> Self
    where
        F: Fn(usize, &T) -> Result<Worker, Failure> + Send + Sync + 'static,
    {
        self.chosen = Chosen::Each(Arc::new(choose));
        self
    }

    /// Sets how items that fail are handled: [`Raise`], which is what happens unless something
    /// else is said, [`ReturnNone`](super::ReturnNone) or [`ReturnError`](super::ReturnError).
    pub fn on_failure<Q: OnFailure>(self, _: Q) -> Batch<T, A, U, Q> {
        self.remade(|same| same)
    }

    /// Keeps every answer in a ledger on disk as soon as it is there, so that nothing that was
    /// paid for is lost, whatever happens to the process.
    pub fn ledger(mut self, folder: super::ledger::LedgerFolder) -> Self
    where
        A: Serialize + DeserializeOwned,
    {
        self.codec = Some((encoded::<A>, json::<A>));
        self.settings.ledger = Some(folder);
        self
    }

    /// The same batch with answers of another type.
    pub(super) fn with_answers<B, V>(
        self,
        decode: Option<Decode<B>>,
        output: OutputFn<T, B, V>,
    ) -> Batch<T, B, V, P> {
        self.remade(|before| Answering {
            chosen: before.chosen.without_function(),
            decode,
            codec: None,
            schema: None,
            output,
        })
    }

    /// The same batch with answers, results or failures of another type.
    fn remade<B, V, Q>(
        self,
        make: impl FnOnce(Answering<T, A, U>) -> Answering<T, B, V>,
    ) -> Batch<T, B, V, Q> {
        let Self { items, prompt, id, chosen, decode, codec, schema, output, settings, .. } = self;
        let made = make(Answering { chosen, decode, codec, schema, output });
        let Answering { chosen, decode, codec, schema, output } = made;
        Batch { items, prompt, id, chosen, decode, codec, schema, output, settings, policy: PhantomData }
    }
}

/// An answer of any type.
fn json<A: DeserializeOwned>(json: &str) -> Result<A, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn encoded<A: Serialize>(answer: &A) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}
