//! Which lane a run takes.

use rowmill_models::{ModelString, ProviderRegistry, batch_providers};
use rowmill_types::settings::{DEADLINE, DETACH, LANE};
use rowmill_types::{Problem, ProblemCode};

use super::options::Lane;
use crate::control::{RunControl, RunNotice};
use crate::endpoints::known_providers;
use crate::spec::RunSpec;

/// The lane of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChosenLane {
    /// Single calls.
    Live,
    /// Batch jobs.
    Batch,
}

/// Chooses the lane of a run, and says which if the user left it open.
pub(crate) fn choose_lane(spec: &RunSpec, control: &RunControl) -> Result<ChosenLane, Problem> {
    match spec.work.lane.lane {
        Lane::Live => Ok(ChosenLane::Live),
        Lane::Batch => Ok(ChosenLane::Batch),
        Lane::Auto => {
            let has_deadline = spec.work.stop_rules.deadline.is_some();
            if has_deadline && spec.work.lane.detach {
                return Err(nobody_switches_problem());
            }
            let without = provider_without_batch_api(spec, &known_providers(&spec.work)?);
            let (lane, text) = match without {
                None if has_deadline => {
                    let text = "requests are sent as batch jobs; what is not back in time for the deadline is sent live";
                    (ChosenLane::Batch, text.to_owned())
                }
                None => (ChosenLane::Batch, "requests are sent as batch jobs".to_owned()),
                Some(name) => {
                    (ChosenLane::Live, format!("requests are sent live: `{name}` has no batch API"))
                }
            };
            (control.notice)(RunNotice::info(text));
            Ok(lane)
        }
    }
}

fn nobody_switches_problem() -> Problem {
    let message = format!(
        "{} and {DEADLINE} do not support {DETACH}: the process has to be there to switch to live calls in time",
        LANE.with_value("auto")
    );
    Problem::new(ProblemCode::Usage, message)
        .hint(format!("omit {DETACH}, or use {}", LANE.with_value("batch")))
}

/// The first provider of the run's models that has no batch API. Cards name their models themselves, so that those are
/// not known before they are read.
fn provider_without_batch_api(spec: &RunSpec, providers: &ProviderRegistry) -> Option<String> {
    let named = [&spec.work.model].into_iter().chain(&spec.work.fallback_models);
    let names = named.filter(|name| !name.is_empty());
    let models = names.filter_map(|name| ModelString::parse(name, providers).ok());
    let known = batch_providers();
    models.map(|model| model.provider).find(|provider| !known.contains(&provider.as_str()))
}
