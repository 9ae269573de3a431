//! What a run needs besides its data: observers, a way to stop it, and its environment.

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
    /// Receives notices for the user.
    pub notice: Arc<dyn Fn(Notice) + Send + Sync>,
    /// Stops the run.
    pub stop: Stop,
    /// The shared limits of accounts; runs with clones of one value share them.
    pub limits: Limits,
    /// The person who can sign in to MCP servers; without one, a server that requires a sign-in is a
    /// problem.
    pub person: Option<Person>,
    /// Where variables are looked up: keys, addresses, tokens and the values of `${NAME}`.
    pub environment: Environment,
    /// How errors of rows name settings in files.
    pub vocabulary: Vocabulary,
}

/// An observer that ignores all events.
struct Nobody;

impl Observer for Nobody {
    fn observe(&self, _: &Event<'_>) {}
}

impl Control {
    /// A control without observers, notices or a person, with its own limits. It uses the environment
    /// of this process.
    #[must_use]
    pub fn quiet() -> Self {
        Self::quiet_in(Environment::of_process())
    }

    /// The same, with another environment.
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

/// A notice for the user while the run is in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Information about what is happening.
    Info(Words),
    /// A warning that something may be wrong.
    Warning(Words),
    /// The address for signing in. It is shown unmasked: with a part of it masked, the address would
    /// not work.
    SignIn(Words),
}

impl Notice {
    /// Creates an informational notice.
    pub fn info(text: impl Into<Words>) -> Self {
        Self::Info(text.into())
    }

    /// Creates a warning.
    pub fn warning(text: impl Into<Words>) -> Self {
        Self::Warning(text.into())
    }

    /// Creates a notice with the address for signing in.
    pub fn sign_in(text: impl Into<Words>) -> Self {
        Self::SignIn(text.into())
    }

    /// Renders the notice in the vocabulary of an entry point.
    #[must_use]
    pub fn worded(self, vocabulary: Vocabulary) -> Self {
        match self {
            Self::Info(text) => Self::Info(text.worded(vocabulary)),
            Self::Warning(text) => Self::Warning(text.worded(vocabulary)),
            Self::SignIn(text) => Self::SignIn(text.worded(vocabulary)),
        }
    }
}
