//! What comes with a run and is no data: who watches and stops it, and where it runs.

use std::fmt;
use std::sync::Arc;

use rowmill_core::ports::{Event, Observer};
use rowmill_engine::{Limits, Stop};
use rowmill_tools::Person;
use rowmill_types::{Vocabulary, Words};

use crate::environment::Environment;

/// How a run is watched and stopped.
#[derive(Clone)]
pub struct Control {
    /// Receives every event.
    pub observer: Arc<dyn Observer>,
    /// Receives what a person should know.
    pub notice: Arc<dyn Fn(Notice) + Send + Sync>,
    /// Stops the run.
    pub stop: Stop,
    /// The limits that it keeps to; runs with clones of one value share them.
    pub limits: Limits,
    /// Who is present and can sign in to MCP servers; where nobody is, a server that asks for a
    /// sign-in is a problem.
    pub person: Option<Person>,
    /// Where it looks up variables: keys, addresses, tokens and what `${NAME}` stands for.
    pub environment: Environment,
    /// How errors of rows name settings, wherever they are written down.
    pub vocabulary: Vocabulary,
}

/// Ignores all events.
struct Nobody;

impl Observer for Nobody {
    fn observe(&self, _: &Event<'_>) {}
}

impl Control {
    /// Nobody watches or stops the run or is present, and it has limits of its own. It sees the
    /// environment of this process.
    #[must_use]
    pub fn quiet() -> Self {
        Self::quiet_in(Environment::of_process())
    }

    /// The same in another environment.
    #[must_use]
    pub fn quiet_in(environment: Environment) -> Self {
        Self {
            observer: Arc::new(Nobody),
            notice: Arc::new(|_| {}),
            stop: Stop::default(),
            limits: Limits::default(),
            person: None,
            environment,
            vocabulary: Vocabulary::NEUTRAL,
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::quiet()
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Control").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// Something that a person should know while the run is in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// What is going on.
    Info(Words),
    /// What may not be as it should.
    Warning(Words),
    /// Where to sign in. It is shown as it is: with a part of it masked, the address would not work.
    SignIn(Words),
}

impl Notice {
    /// Something that is going on.
    pub fn info(text: impl Into<Words>) -> Self {
        Self::Info(text.into())
    }

    /// Something that may not be as it should.
    pub fn warning(text: impl Into<Words>) -> Self {
        Self::Warning(text.into())
    }

    /// Where to sign in.
    pub fn sign_in(text: impl Into<Words>) -> Self {
        Self::SignIn(text.into())
    }

    /// The notice in the words of an entry point.
    #[must_use]
    pub fn worded(self, vocabulary: Vocabulary) -> Self {
        match self {
            Self::Info(text) => Self::Info(text.worded(vocabulary)),
            Self::Warning(text) => Self::Warning(text.worded(vocabulary)),
            Self::SignIn(text) => Self::SignIn(text.worded(vocabulary)),
        }
    }
}
