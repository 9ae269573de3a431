//! Traces of a run: the agents in them, the masking of secrets, and their folder.

use std::sync::Arc;
use std::time::SystemTime;

use rowmill_core::record::{RedactedTraceFacts, TraceFacts, TracedModelRole};
use rowmill_core::redact::Redactor;
use rowmill_data::traces::TraceFolder;
use rowmill_engine::RecordSinks;
use rowmill_types::settings::{ACCEPT_CHANGES, EXPORT_TRACES};
use rowmill_types::{Problem, ProblemCode};

use crate::prepare_input;
use crate::spec::{ExistingOutput, RunSpec};

/// The agent name of a worker that is a model without a card.
pub(crate) const PLAIN_WORKER: &str = "worker";

/// The agents that appear in the traces of a run.
#[derive(Debug, Default)]
pub(crate) struct TracedAgents {
    /// The agent that rows go to.
    pub(crate) agent: String,
    /// All agents, by their index in the agent graph.
    pub(crate) agents: Vec<String>,
    /// The request settings of each model role.
    pub(crate) model_roles: Vec<TracedModelRole>,
}

impl TracedAgents {
    /// A single model without agents.
    pub(crate) fn single_model(model: String, instruction: Option<String>) -> Self {
        let model_roles = vec![TracedModelRole { model, system: instruction }];
        Self { agent: PLAIN_WORKER.to_owned(), agents: vec![PLAIN_WORKER.to_owned()], model_roles }
    }
}

/// Claims the folder of traces, if they are wanted; its contents stay as they are.
pub(crate) fn claim_trace_folder(spec: &RunSpec) -> Result<Option<TraceFolder>, Problem> {
    let claim = prepare_input::output_claim(spec.existing);
    spec.traces.as_deref().map(|path| TraceFolder::claim(path, claim)).transpose()
}

/// What is needed to write traces.
#[derive(Debug)]
pub(crate) struct TraceStart<'a> {
    /// The folder, if traces are wanted.
    pub(crate) folder: Option<TraceFolder>,
    /// The id of the run.
    pub(crate) run: &'a str,
    /// The agents.
    pub(crate) traced_agents: TracedAgents,
    /// Masks secrets.
    pub(crate) redactor: Redactor,
}

/// Adds a sink for traces, if they are wanted; returns the settings of traces. Called just before the
/// first row of the run.
pub(crate) fn begin_traces(
    spec: &RunSpec,
    traced: TraceStart<'_>,
    sinks: &mut RecordSinks,
) -> Result<Option<Arc<RedactedTraceFacts>>, Problem> {
    let TraceStart { folder, run, traced_agents, redactor } = traced;
    let (Some(folder), Some(path)) = (folder, &spec.traces) else { return Ok(None) };
    if let (Some(other), ExistingOutput::Resume) =
        (folder.run_id().filter(|other| other != run), spec.existing)
    {
        let message = format!("the traces in `{}` belong to another run, `{other}`", path.display());
        return Err(Problem::new(ProblemCode::ChangedRun, message).hint(format!(
            "choose another folder with {EXPORT_TRACES}, or use {ACCEPT_CHANGES} to mix both"
        )));
    }
    let TracedAgents { agent, agents: members, model_roles } = traced_agents;
    // A clock before 1970 must not keep the run from starting.
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let facts = TraceFacts { run: run.to_owned(), agent, started, agents: members, model_roles };
    let settings = Arc::new(RedactedTraceFacts::new(facts, redactor));
    // Before the output, because an envelope in the output means that the row has been published
    // completely.
    sinks.in_input_order.insert(0, Box::new(folder.sink(settings.clone())?));
    Ok(Some(settings))
}
