//! What a run needs besides its data: observers, a way to stop it, and its environment.

use std::fmt;
use std::sync::Arc;

use rowmill_core::ports::{Observer, RunEvent};
use rowmill_engine::{SharedLimits, StopHandle};
use rowmill_tools::InteractiveSignIn;
use rowmill_types::{DiagnosticText, SettingVocabulary};

use crate::environment::RunEnvironment;
use crate::lane::BatchLaneHandle;

/// How a run is watched and stopped.
#[derive(Clone)]
pub struct RunControl {
    /// Receives every event.
    pub observer: Arc<dyn Observer>,
    /// Receives notices for the user.
    pub notice: Arc<dyn Fn(RunNotice) + Send + Sync>,
    /// Stops the run.
    pub stop: StopHandle,
    /// The shared limits of accounts; runs with clones of one value share them.
    pub limits: SharedLimits,
    /// The person who can sign in to MCP servers; without one, a server that requires a sign-in is a
    /// problem.
    pub person: Option<InteractiveSignIn>,
    /// Where variables are looked up: keys, addresses, tokens and the values of `${NAME}`.
    pub environment: RunEnvironment,
    /// How errors of rows name settings in files.
    pub vocabulary: SettingVocabulary,
    /// The batch lane of a run that is in progress; callers leave it at its default.
    pub lane: BatchLaneHandle,
}

/// An observer that ignores all events.
struct Nobody;

impl Observer for Nobody {
    fn observe(&self, _: &RunEvent<'_>) {}
}

impl RunControl {
    /// A control without observers, notices or a person, with its own limits. It uses the environment
    /// of this process.
    #[must_use]
    pub fn silent() -> Self {
        Self::silent_in(RunEnvironment::from_process())
    }

    /// The same, with another environment.
    #[must_use]
    pub fn silent_in(environment: RunEnvironment) -> Self {
        Self {
            observer: Arc::new(Nobody),
            notice: Arc::new(|_| {}),
            stop: StopHandle::default(),
            limits: SharedLimits::default(),
            person: None,
            environment,
            vocabulary: SettingVocabulary::NEUTRAL,
            lane: BatchLaneHandle::default(),
        }
    }
}

impl Default for RunControl {
    fn default() -> Self {
        Self::silent()
    }
}

impl fmt::Debug for RunControl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Control").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// A notice for the user while the run is in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunNotice {
    /// Information about what is happening.
    Info(DiagnosticText),
    /// A warning that something may be wrong.
    Warning(DiagnosticText),
    /// The address for signing in. It is shown unmasked: with a part of it masked, the address would
    /// not work.
    SignIn(DiagnosticText),
}

impl RunNotice {
    /// Creates an informational notice.
    pub fn info(text: impl Into<DiagnosticText>) -> Self {
        Self::Info(text.into())
    }

    /// Creates a warning.
    pub fn warning(text: impl Into<DiagnosticText>) -> Self {
        Self::Warning(text.into())
    }

    /// Creates a notice with the address for signing in.
    pub fn sign_in(text: impl Into<DiagnosticText>) -> Self {
        Self::SignIn(text.into())
    }

    /// Renders the notice in the vocabulary of an entry point.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: SettingVocabulary) -> Self {
        match self {
            Self::Info(text) => Self::Info(text.with_vocabulary(vocabulary)),
            Self::Warning(text) => Self::Warning(text.with_vocabulary(vocabulary)),
            Self::SignIn(text) => Self::SignIn(text.with_vocabulary(vocabulary)),
        }
    }
}
