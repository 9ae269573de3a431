//! Turns the description of a worker into what the engine needs.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::agent::{Agent, Cast, Kind, Member, instruction};
use rowmill_core::fingerprint::digest;
use rowmill_core::limits::{BudgetLimits, Pace, Parallel, RateFlags, ShareSettings};
use rowmill_core::ports::{Model, ToolHost};
use rowmill_core::redact::Redactor;
use rowmill_core::validate::ResultSchema;
use rowmill_engine::{Crew, Lane, LaneKey, LaneSettings, Limits, OnQuota, Tools as CrewTools, Voice};
use rowmill_http::HttpClient;
use rowmill_types::{AttachmentRules, Money, Problem, ProblemCode, ToolSpec};
use serde_json::json;

use super::tools::{ReadyTools, Tools};
use super::vocabulary::LIBRARY;
use super::worker::{Asked, Brief, Inner, Worker};
use crate::agent_flags::AgentFlags;
use crate::agents::{Stage, StageSettings, stage, with_fast_agent_config};
use crate::control::Control;
use crate::lanes::{Access, Asks, Lanes, Maker};
use crate::spec::VariableFlags;
use crate::texts::load_cards;
use crate::work::WorkSpec;

/// The maximum number of model calls in one conversation with tools.
const MAX_ITERATIONS: u32 = 50;

/// What all workers of a batch have in common.
pub(super) struct Scene {
    pub(super) work: WorkSpec,
    pub(super) http: HttpClient,
    pub(super) control: Control,
    /// The JSON Schema of answers.
    pub(super) schema: Option<serde_json::Value>,
    /// Learns the secrets of workers, which must not appear in any file.
    pub(super) redactor: Redactor,
}

/// A worker that has been set up.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    pub(super) crew: Arc<Crew>,
    /// The model string, or the name of the worker.
    pub(super) name: String,
    /// Identifies everything besides the messages that shapes an answer.
    pub(super) identity: String,
    /// Tool hosts that other workers may use as well.
    pub(super) given: Vec<Arc<dyn ToolHost>>,
}

impl Ready {
    /// Closes what was started for this worker, and the hosts that it was given.
    pub(super) async fn close(&self) {
        self.close_own().await;
        for host in &self.given {
            host.close().await;
        }
    }

    /// Closes only what was started for this worker alone.
    pub(super) async fn close_own(&self) {
        if let Some(tools) = &self.crew.tools {
            tools.host.close().await;
        }
        for lane in self.crew.voices.iter().flat_map(|voice| &voice.lanes) {
            lane.model.close().await;
        }
    }
}

impl Scene {
    pub(super) fn result_schema(&self) -> Result<Option<ResultSchema>, Problem> {
        let text = self.schema.as_ref().map(ToString::to_string);
        text.map(|text| ResultSchema::parse(&text, "the type of answers")).transpose()
    }

    /// Sets up a worker.
    pub(super) async fn ready(&self, worker: &Worker) -> Result<Ready, Problem> {
        let inner = &*worker.inner;
        match &inner.asked {
            Asked::Cards { sources, agent, model, variables } => {
                let flags = AgentFlags {
                    cards: sources.clone(),
                    agent: agent.clone(),
                    model_given: model.is_some(),
                    ..self.work.agents.clone()
                };
                let variables = VariableFlags { pairs: variables.clone(), ..VariableFlags::default() };
                let model = model.clone().unwrap_or_default();
                self.of_cards(inner, WorkSpec { agents: flags, model, ..self.work.clone() }, &variables).await
            }
            Asked::Model(_) | Asked::Own { .. } => self.of_model(inner),
        }
    }

    async fn of_cards(
        &self,
        inner: &Inner,
        work: WorkSpec,
        variables: &VariableFlags,
    ) -> Result<Ready, Problem> {
        if inner.instruction.is_some() || inner.tools.is_some() {
            let message = "an agent card defines its own instruction and tools";
            return Err(Problem::new(ProblemCode::InvalidCard, message)
                .hint("add them to the card, or use `Worker::model`"));
        }
        if inner.key.is_some() || inner.base_url.is_some() {
            let message = "an agent card defines its own connection to the provider";
            return Err(Problem::new(ProblemCode::InvalidCard, message)
                .hint("add `api_key` to the card, and set base URLs with `Batch::providers`"));
        }
        let work = WorkSpec { fallback_models: inner.fallbacks.clone(), ..work };
        let loaded = load_cards(&work.agents, variables, &self.http, &self.control).await?;
        let work = with_fast_agent_config(
            &work,
            Some(&loaded),
            &self.control.environment.lookup(),
            &*self.control.notice,
        )?;
        let maker = Maker::new(&work, &self.http, &self.control)?;
        let settings =
            StageSettings { schema: self.result_schema()?, traced: false, redactor: self.redactor.clone() };
        let Stage { cast, voices, tools, model, identity, .. } =
            Box::pin(stage(&work, &maker, &loaded, settings)).await?;
        let crew = Arc::new(Crew { cast, voices, tools });
        Ok(Ready { crew, name: model, identity, given: Vec::new() })
    }

    /// An agent graph of one agent that calls a model, with or without tools.
    fn of_model(&self, inner: &Inner) -> Result<Ready, Problem> {
        let (cast_tools, specs, host, given) = match inner.tools.as_ref().map(Tools::ready).transpose()? {
            Some(ReadyTools { tools, specs, host, given }) => (tools, specs, Some(host), given),
            None => (Vec::new(), Vec::new(), None, Vec::new()),
        };
        let agent = Agent {
            tools: (0..cast_tools.len()).collect(),
            max_iterations: if host.is_some() { MAX_ITERATIONS } else { u32::MAX },
            ..Agent::default()
        };
        let member = Member { name: String::new(), description: String::new(), kind: Kind::Agent(agent) };
        let cast = Cast::new(vec![member], cast_tools, 0, self.result_schema()?)?;
        let cast =
            cast.with_turns(self.work.agents.turns).with_repairs(self.work.repairs).with_vocabulary(LIBRARY);
        let (mut voices, mut identity, mut name) = (Vec::new(), String::new(), String::new());
        for index in 0..cast.voices().len() {
            let brief = Brief {
                instruction: instruction(&cast, index, inner.instruction.as_deref()),
                schema: cast.told_schema(index),
                tools: specs.clone(),
            };
            let Spoken { voice, model, identity: own } = self.voice(inner, brief)?;
            voices.push(voice);
            identity = digest(&format!("{identity}\n{own}"));
            name = model;
        }
        let result_limit = self.work.agents.tool_result_limit;
        let tools = host.map(|host| CrewTools { host, hooks: None, result_limit });
        let crew = Arc::new(Crew { cast: Arc::new(cast), voices, tools });
        Ok(Ready { crew, name, identity, given })
    }

    fn voice(&self, inner: &Inner, brief: Brief) -> Result<Spoken, Problem> {
        let own = brief_identity(&brief);
        let (model, lane) = match &inner.asked {
            Asked::Own { name, make } => {
                let lane = self.own_lane(inner, name, make(&brief)?)?;
                (name.clone(), Lane { identity: digest(&format!("{name}\n{own}")), ..lane })
            }
            Asked::Model(name) => return self.known_voice(inner, name, brief),
            Asked::Cards { .. } => return Err(Problem::new(ProblemCode::Internal, "cards have voices")),
        };
        let files = AttachmentRules { kinds: Vec::new(), max_total: 0, max_count: 0 };
        Ok(Spoken { voice: Voice { lanes: vec![Arc::new(lane)], files }, model, identity: own })
    }

    /// The models of a known provider.
    fn known_voice(&self, inner: &Inner, name: &str, brief: Brief) -> Result<Spoken, Problem> {
        let maker = Maker::new(&self.work, &self.http, &self.control)?;
        let asks = Asks {
            models: std::iter::once(name.to_owned()).chain(inner.fallbacks.iter().cloned()).collect(),
            instruction: brief.instruction,
            schema: brief.schema,
            tools: brief.tools,
            parallel_tool_calls: None,
            access: Some(Access {
                model: name.to_owned(),
                key: inner.key.clone(),
                base_url: inner.base_url.clone(),
            }),
        };
        let Lanes { model, lanes, identity, rules, secrets } = maker.lanes(&asks)?;
        self.redactor.learn(&secrets)?;
        Ok(Spoken { voice: Voice { lanes, files: rules }, model: model.to_string(), identity })
    }

    fn own_lane(&self, inner: &Inner, name: &str, model: Arc<dyn Model>) -> Result<Lane, Problem> {
        for limits in [self.work.budget, self.work.agents.row_budget] {
            check_own_budget(limits, name, inner)?;
        }
        let share = ShareSettings {
            parallel: self.work.parallel,
            pace: self.work.pace,
            rates: self.work.rates,
            max_output: inner.max_output,
            reserves_output: false,
            priming: false,
            max_outage: self.work.max_outage,
        };
        let settings = LaneSettings { share, on_quota: self.work.on_quota };
        let key = LaneKey { provider: format!("own {name}"), account: String::new(), model: name.to_owned() };
        Ok(Lane {
            name: name.to_owned(),
            model,
            gate: self.control.limits.gate(key, settings),
            price: inner.price,
            max_output: inner.max_output,
            // A model of the program need not know about a limit that a request sets.
            output_caps: None,
            fixed_bytes: 0,
            identity: String::new(),
        })
    }
}

/// A model role, with the name and the identity of its model.
struct Spoken {
    voice: Voice,
    model: String,
    identity: String,
}

/// Checks that the worst-case cost of a call is known if there is a budget, which cannot be kept
/// otherwise.
fn check_own_budget(limits: BudgetLimits, name: &str, inner: &Inner) -> Result<(), Problem> {
    let unknown = |what: &str, method: &str| {
        let message = format!("a spending limit needs {what} of `{name}`, which is not known");
        Problem::new(ProblemCode::UnknownPrice, message).hint(format!("set it with `Worker::{method}`"))
    };
    if limits.cost.is_some() && inner.price.is_none() {
        return Err(unknown("the price", "price"));
    }
    if limits.any() && inner.max_output.is_none() {
        return Err(unknown("the maximum answer length", "max_output"));
    }
    let worst = inner.price.zip(inner.max_output).map_or(Money::ZERO, |(price, most)| price.worst(0, most));
    match limits.cost {
        Some(most) if worst > most => {
            let message = format!("one answer of `{name}` can cost {worst}, more than the limit of {most}");
            Err(Problem::new(ProblemCode::UnknownPrice, message)
                .hint("limit the length of answers, or raise the limit"))
        }
        _ => Ok(()),
    }
}

/// More calls than there can be at once.
const ANY_NUMBER: usize = 1 << 30;

/// The row worker for a function of the program. Its answers may be anything.
pub(super) fn function_crew(model: Arc<dyn Model>, keeps_answers: bool) -> Result<Crew, Problem> {
    let anything =
        keeps_answers.then(|| ResultSchema::parse("{}", "the answers of a function")).transpose()?;
    let share = ShareSettings {
        // The batch limits the number of items at once, and a function of this process needs no probing
        // with a few calls first, as a provider does.
        parallel: Parallel::AtMost(ANY_NUMBER),
        pace: Pace::Off,
        rates: RateFlags::default(),
        max_output: None,
        reserves_output: false,
        priming: false,
        // A function in this process never has an outage.
        max_outage: Duration::ZERO,
    };
    let settings = LaneSettings { share, on_quota: OnQuota::Stop };
    let key = LaneKey { provider: String::new(), account: String::new(), model: String::new() };
    let lane = Lane {
        name: "function".into(),
        model,
        gate: Limits::default().gate(key, settings),
        price: None,
        max_output: None,
        output_caps: None,
        fixed_bytes: 0,
        identity: String::new(),
    };
    let files = AttachmentRules { kinds: Vec::new(), max_total: 0, max_count: 0 };
    let voices = vec![Voice { lanes: vec![Arc::new(lane)], files }];
    Ok(Crew { cast: Arc::new(Cast::plain(anything, 0)?), voices, tools: None })
}

/// What an own model receives with every request, as text that stays the same in later versions.
fn brief_identity(brief: &Brief) -> String {
    let tools: Vec<String> = brief.tools.iter().map(ToolSpec::identity).collect();
    json!([brief.instruction, brief.schema, tools]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_own_model_is_told_counts_by_text_that_no_change_of_the_code_changes() {
        let tool = ToolSpec { name: "look".into(), description: None, schema: json!({}) };
        let brief = Brief { instruction: Some("Be \"brief\".".into()), schema: None, tools: vec![tool] };
        assert_eq!(brief_identity(&brief), r#"["Be \"brief\".",null,["[\"look\",null,{}]"]]"#);
    }
}
