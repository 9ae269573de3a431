//! Workers: descriptions of what answers items, which can be cloned and kept.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rowmill_core::cost::Price;
use rowmill_core::ports::Model;
use rowmill_types::{Problem, Secret, ToolSpec};

use super::tools::WorkerTools;

/// A worker, which answers items: a model, the agents of cards, or your own implementation of
/// [`Model`].
///
/// It is a description: nothing is started or sent before a batch runs. Every item gets a fresh
/// history; connections, servers and limits are shared by all items of a batch.
///
/// A text converts into a worker that calls the model of that name, so `"openai.gpt-5.4-mini"` can be
/// used wherever a worker is expected.
///
/// ```
/// use rowmill::{Batch, Worker};
///
/// let worker = Worker::from_model_name("passthrough").instruction("Repeat what you hear.");
/// let results = Batch::over(["hey"]).prompt(|item| *item).worker(worker).run_blocking()?;
/// assert_eq!(results.items, ["hey"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Worker {
    pub(super) inner: Arc<WorkerParts>,
}

#[derive(Clone)]
pub(super) struct WorkerParts {
    pub(super) asked: WorkerModel,
    pub(super) instruction: Option<String>,
    pub(super) fallbacks: Vec<String>,
    pub(super) key: Option<Secret>,
    pub(super) base_url: Option<String>,
    pub(super) tools: Option<WorkerTools>,
    pub(super) price: Option<Price>,
    pub(super) max_output: Option<u64>,
}

/// Creates an own model from what it must send to the provider.
pub(super) type MakeModelFn =
    Arc<dyn Fn(&ModelRequirements) -> Result<Arc<dyn Model>, Problem> + Send + Sync>;

/// What answers.
#[derive(Clone)]
pub(super) enum WorkerModel {
    /// A model of a known provider, by its model string.
    Model(String),
    /// A model of the program.
    Own { name: String, make: MakeModelFn },
    /// The agents of cards.
    Cards { sources: Vec<String>, agent: Option<String>, model: Option<String>, variables: Vec<String> },
}

/// What an own model must send to its provider with every request.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ModelRequirements {
    /// The system text.
    pub instruction: Option<String>,
    /// The JSON Schema that answers must satisfy.
    pub schema: Option<serde_json::Value>,
    /// The tools that can be called.
    pub tools: Vec<ToolSpec>,
}

impl Worker {
    fn asking(asked: WorkerModel) -> Self {
        let inner = WorkerParts {
            asked,
            instruction: None,
            fallbacks: Vec::new(),
            key: None,
            base_url: None,
            tools: None,
            price: None,
            max_output: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// A worker that calls a model, named as in `--model`, such as `openai.gpt-5.4-mini?temperature=0`.
    pub fn from_model_name(name: impl Into<String>) -> Self {
        Self::asking(WorkerModel::Model(name.into()))
    }

    /// A worker that runs the agents of cards, from a file, a folder or an address.
    ///
    /// ```
    /// use rowmill::{Batch, Worker};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let card = folder.path().join("greeter.md");
    /// std::fs::write(&card, "---\nname: greeter\n---\nGreet politely.\n")?;
    /// let worker = Worker::from_card(&card).override_card_model("passthrough");
    /// let results = Batch::over(["Ada"]).prompt(|name| *name).worker(worker).run_blocking()?;
    /// assert_eq!(results.items, ["Ada"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_card(source: impl AsRef<Path>) -> Self {
        let sources = vec![source.as_ref().to_string_lossy().into_owned()];
        Self::asking(WorkerModel::Cards { sources, agent: None, model: None, variables: Vec::new() })
    }

    /// A worker that calls a model of the program, which already has the instruction and all else it
    /// sends.
    ///
    /// ```
    /// use rowmill::extend::{BoxFuture, CallError, Completion, Model, Request};
    /// use rowmill::{Batch, Worker};
    ///
    /// #[derive(Debug)]
    /// struct Yes;
    ///
    /// impl Model for Yes {
    ///     fn complete<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
    ///         Box::pin(async { Ok(Completion::from_text("yes")) })
    ///     }
    /// }
    ///
    /// let batch = Batch::over(["May I?"]).prompt(|question| *question).worker(Worker::from_model("yes", Yes));
    /// assert_eq!(batch.run_blocking()?.items, ["yes"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_model(name: impl Into<String>, model: impl Model + 'static) -> Self {
        let model: Arc<dyn Model> = Arc::new(model);
        Self::from_model_maker(name, move |_| Ok(Arc::clone(&model)))
    }

    /// A worker that calls a model of the program, which is created once the instruction, the schema
    /// and the tools are known.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use rowmill::extend::{BoxFuture, CallError, Completion, Model, Request};
    /// use rowmill::{Batch, Worker};
    ///
    /// #[derive(Debug)]
    /// struct Instructed(String);
    ///
    /// impl Model for Instructed {
    ///     fn complete<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Completion, CallError>> {
    ///         Box::pin(async { Ok(Completion::from_text(self.0.as_str())) })
    ///     }
    /// }
    ///
    /// let worker = Worker::from_model_maker("instructed", |brief| Ok(Arc::new(Instructed(brief.instruction.clone().unwrap_or_default()))));
    /// let batch = Batch::over([1]).prompt(|_| "").worker(worker.instruction("Be kind."));
    /// assert_eq!(batch.run_blocking()?.items, ["Be kind."]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_model_maker<F>(name: impl Into<String>, make: F) -> Self
    where
        F: Fn(&ModelRequirements) -> Result<Arc<dyn Model>, Problem> + Send + Sync + 'static,
    {
        Self::asking(WorkerModel::Own { name: name.into(), make: Arc::new(make) })
    }

    fn with(mut self, change: impl FnOnce(&mut WorkerParts)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// Sets the instruction that is sent before every item. Cards have their own.
    #[must_use]
    pub fn instruction(self, text: impl Into<String>) -> Self {
        self.with(|inner| inner.instruction = Some(text.into()))
    }

    /// Adds a model that is called if the previous one gives no answer.
    ///
    /// ```
    /// use rowmill::{Batch, Worker};
    ///
    /// // The first model always fails here.
    /// let worker = Worker::from_model_name("simulated?failure_rate=1").fallback("passthrough");
    /// let batch = Batch::over(["hey"]).prompt(|item| *item).worker(worker).retries(0);
    /// assert_eq!(batch.run_blocking()?.items, ["hey"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn fallback(self, model: impl Into<String>) -> Self {
        self.with(|inner| inner.fallbacks.push(model.into()))
    }

    /// Sets the API key for the model's provider, instead of the one in the environment. Cards have
    /// their own.
    ///
    /// ```
    /// use rowmill::Worker;
    ///
    /// let worker = Worker::from_model_name("openai.gpt-5.4-mini").key("from the program's own store");
    /// assert!(!format!("{worker:?}").contains("store"));
    /// ```
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|inner| inner.key = Some(Secret::new(key.into())))
    }

    /// Sets the base URL of the model's provider, instead of its default and of the one in the
    /// environment: your own server, a proxy, or a simulator. For cards, use
    /// [`Batch::providers`](super::Batch::providers).
    ///
    /// ```
    /// use rowmill::Worker;
    ///
    /// let worker = Worker::from_model_name("generic.llama3.2").base_url("http://localhost:8000/v1");
    /// # drop(worker);
    /// ```
    #[must_use]
    pub fn base_url(self, address: impl Into<String>) -> Self {
        self.with(|inner| inner.base_url = Some(address.into()))
    }

    /// Sets the tools that the model may call. Cards have their own.
    #[must_use]
    pub fn tools(self, tools: impl Into<WorkerTools>) -> Self {
        self.with(|inner| inner.tools = Some(tools.into()))
    }

    /// Sets the price of an own model; a batch with a limit on cost cannot use it without one.
    #[must_use]
    pub fn price(self, price: Price) -> Self {
        self.with(|inner| inner.price = Some(price))
    }

    /// Sets the maximum number of tokens in an answer of an own model; a batch with a limit on cost or
    /// tokens requires it.
    #[must_use]
    pub fn max_output(self, tokens: u64) -> Self {
        self.with(|inner| inner.max_output = Some(tokens))
    }

    /// Chooses the card that works on items, if several could.
    #[must_use]
    pub fn agent(self, name: impl Into<String>) -> Self {
        self.with(|inner| {
            if let WorkerModel::Cards { agent, .. } = &mut inner.asked {
                *agent = Some(name.into());
            }
        })
    }

    /// Overrides the model of the worker's card.
    #[must_use]
    pub fn override_card_model(self, name: impl Into<String>) -> Self {
        self.with(|inner| {
            if let WorkerModel::Cards { model, .. } = &mut inner.asked {
                *model = Some(name.into());
            }
        })
    }

    /// Sets a variable of the cards' instructions.
    #[must_use]
    pub fn variable(self, name: &str, value: &str) -> Self {
        self.with(|inner| {
            if let WorkerModel::Cards { variables, .. } = &mut inner.asked {
                variables.push(format!("{name}={value}"));
            }
        })
    }
}

impl From<&str> for Worker {
    fn from(name: &str) -> Self {
        Self::from_model_name(name)
    }
}

impl From<String> for Worker {
    fn from(name: String) -> Self {
        Self::from_model_name(name)
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match &self.inner.asked {
            WorkerModel::Model(name) => ("model", name.clone()),
            WorkerModel::Own { name, .. } => ("own", name.clone()),
            WorkerModel::Cards { sources, .. } => ("cards", sources.join(", ")),
        };
        out.debug_struct("Worker").field(kind, &name).finish_non_exhaustive()
    }
}
