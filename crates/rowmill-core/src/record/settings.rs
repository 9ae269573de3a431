//! The settings for the traces of a run: the same for every row.

use std::time::Duration;

use crate::fingerprint::text_digest;
use crate::redact::Redactor;

/// The data for traces that is known before the first row.
#[derive(Debug, Clone, Default)]
pub struct TraceFacts {
    /// The id of the run, the same across all its resumes.
    pub run: String,
    /// The name of the agent that rows go to.
    pub agent: String,
    /// When the clock of the rows started, as the time since 1970.
    pub started: Duration,
    /// The names of all agents, by their index in the agent graph.
    pub agents: Vec<String>,
    /// The settings of each model role.
    pub model_roles: Vec<TracedModelRole>,
}

/// The settings of a model role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedModelRole {
    /// The model string that is asked first.
    pub model: String,
    /// The instruction, as the model gets it.
    pub system: Option<String>,
}

/// The settings for the traces of a run. No text in here contains a secret.
#[derive(Debug)]
pub struct RedactedTraceFacts {
    facts: TraceFacts,
    /// The digests of the instructions of all model roles.
    digests: Vec<Option<String>>,
    redactor: Redactor,
}

impl RedactedTraceFacts {
    /// Settings from which every secret that `redactor` knows is removed.
    #[must_use]
    pub fn new(mut facts: TraceFacts, redactor: Redactor) -> Self {
        let clean = |text: &mut String| *text = redactor.redact(text).into_owned();
        clean(&mut facts.agent);
        facts.agents.iter_mut().for_each(clean);
        for model_role in &mut facts.model_roles {
            clean(&mut model_role.model);
            model_role.system.iter_mut().for_each(clean);
        }
        let digests = facts
            .model_roles
            .iter()
            .map(|model_role| model_role.system.as_deref().map(text_digest))
            .collect();
        Self { facts, digests, redactor }
    }

    /// The id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.facts.run
    }

    /// The name of the agent that rows go to.
    #[must_use]
    pub fn entry_agent_name(&self) -> &str {
        &self.facts.agent
    }

    /// The instruction with this digest; `None` if it belongs to an earlier part of the run, which had other settings.
    #[must_use]
    pub fn instruction_by_digest(&self, wanted: &str) -> Option<&str> {
        let place = self.digests.iter().position(|digest| digest.as_deref() == Some(wanted))?;
        self.facts.model_roles.get(place)?.system.as_deref()
    }

    /// Removes secrets from texts.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The name of an agent; that of the worker if it has none.
    pub(super) fn agent_name(&self, place: usize) -> &str {
        let name = self.facts.agents.get(place).filter(|name| !name.is_empty());
        name.map_or(self.entry_agent_name(), String::as_str)
    }

    pub(super) fn model_of_role(&self, model_role: usize) -> &str {
        self.facts.model_roles.get(model_role).map_or("", |model_role| model_role.model.as_str())
    }

    pub(super) fn system_digest(&self, model_role: usize) -> Option<&str> {
        self.digests.get(model_role)?.as_deref()
    }

    /// Nanoseconds since 1970 for a time counted from the start of the run.
    pub(super) fn unix_nanoseconds(&self, since_start: Duration) -> u64 {
        u64::try_from((self.facts.started + since_start).as_nanos()).unwrap_or(u64::MAX)
    }
}
