//! Traces of a run: who speaks, what must not be told, and the folder that gets them.

use std::sync::Arc;
use std::time::SystemTime;

use rowmill_core::record::{TraceFacts, TraceSettings, TracedVoice};
use rowmill_core::redact::Redactor;
use rowmill_data::traces::TraceFolder;
use rowmill_engine::Sinks;
use rowmill_types::settings::{ACCEPT_CHANGES, EXPORT_TRACES};
use rowmill_types::{Problem, ProblemCode};

use crate::prepare;
use crate::spec::{Existing, RunSpec};

/// The name of a worker that is a model and nothing else.
pub(crate) const PLAIN_WORKER: &str = "worker";

/// Who speaks in a run.
#[derive(Debug, Default)]
pub(crate) struct Speakers {
    /// The agent that rows go to.
    pub(crate) agent: String,
    /// All agents, by their place in the agent graph.
    pub(crate) members: Vec<String>,
    /// How each model role asks.
    pub(crate) voices: Vec<TracedVoice>,
}

impl Speakers {
    /// A model and nothing else.
    pub(crate) fn plain(model: String, instruction: Option<String>) -> Self {
        let voices = vec![TracedVoice { model, system: instruction }];
        Self { agent: PLAIN_WORKER.to_owned(), members: vec![PLAIN_WORKER.to_owned()], voices }
    }
}

/// Makes the folder of traces ours, if one is wanted; what is in it stays as it is.
pub(crate) fn claim(spec: &RunSpec) -> Result<Option<TraceFolder>, Problem> {
    let claim = prepare::claim(spec.existing);
    spec.traces.as_deref().map(|path| TraceFolder::claim(path, claim)).transpose()
}

/// What traces are begun with.
#[derive(Debug)]
pub(crate) struct Traced<'a> {
    /// The folder, if they are wanted.
    pub(crate) folder: Option<TraceFolder>,
    /// The run that they are of.
    pub(crate) run: &'a str,
    /// Who speaks.
    pub(crate) speakers: Speakers,
    /// Takes out what must not be told.
    pub(crate) redactor: Redactor,
}

/// Adds a sink for traces, if they are wanted; gives what they are made with. The rows of the run
/// are about to begin.
pub(crate) fn begin(
    spec: &RunSpec,
    traced: Traced<'_>,
    sinks: &mut Sinks,
) -> Result<Option<Arc<TraceSettings>>, Problem> {
    let Traced { folder, run, speakers, redactor } = traced;
    let (Some(folder), Some(path)) = (folder, &spec.traces) else { return Ok(None) };
    if let (Some(other), Existing::Resume) = (folder.run().filter(|other| other != run), spec.existing) {
        let message = format!("the traces in `{}` are of another run, `{other}`", path.display());
        return Err(Problem::new(ProblemCode::ChangedRun, message)
            .hint(format!("name another folder with {EXPORT_TRACES}, or say {ACCEPT_CHANGES} to mix both")));
    }
    let Speakers { agent, members, voices } = speakers;
    // A clock before 1970 is no reason not to run.
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let facts = TraceFacts { run: run.to_owned(), agent, started, members, voices };
    let settings = Arc::new(TraceSettings::new(facts, redactor));
    // Before the output, whose envelopes say that a row needs no publishing any more.
    sinks.ordered.insert(0, Box::new(folder.sink(settings.clone())?));
    Ok(Some(settings))
}
