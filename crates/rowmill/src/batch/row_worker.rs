//! Turns the description of a worker into what the engine needs.

use std::sync::Arc;
use std::time::Duration;

use rowmill_core::agent::{AgentDefinition, AgentGraph, AgentKind, AgentSettings, system_instruction};
use rowmill_core::fingerprint::text_digest;
use rowmill_core::limits::{BudgetLimits, CallParallelism, MinuteLimits, PaceMode, RunPaceSettings};
use rowmill_core::ports::{Model, ToolHost};
use rowmill_core::redact::Redactor;
use rowmill_core::validate::ResultSchema;
use rowmill_engine::{
    CallGateSettings, EndpointKey, ModelEndpoint, ModelRoleEndpoints, OnQuota, RowWorker, SharedLimits,
    ToolSetup,
};
use rowmill_http::HttpClient;
use rowmill_types::{AttachmentRules, Money, Problem, ProblemCode, ToolSpec};
use serde_json::json;

use super::tools::{ReadyTools, WorkerTools};
use super::vocabulary::LIBRARY_VOCABULARY;
use super::worker::{ModelRequirements, Worker, WorkerModel, WorkerParts};
use crate::agent_options::AgentOptions;
use crate::agents::{AgentSetup, AgentSetupSettings, set_up_agents, with_fast_agent_config};
use crate::control::RunControl;
use crate::endpoints::{ModelEndpoints, ModelFactory, ModelRequest, ProviderAccess};
use crate::spec::InstructionVariableOptions;
use crate::texts::load_cards;
use crate::work_spec::WorkSpec;

/// The maximum number of model calls in one conversation with tools.
const MAX_ITERATIONS: u32 = 50;

/// What all workers of a batch have in common.
pub(super) struct WorkerContext {
    pub(super) work: WorkSpec,
    pub(super) http: HttpClient,
    pub(super) control: RunControl,
    /// The JSON Schema of answers.
    pub(super) schema: Option<serde_json::Value>,
    /// Learns the secrets of workers, which must not appear in any file.
    pub(super) redactor: Redactor,
}

/// A worker that has been set up.
#[derive(Debug, Clone)]
pub(super) struct ReadyWorker {
    pub(super) row_worker: Arc<RowWorker>,
    /// The model string, or the name of the worker.
    pub(super) name: String,
    /// Identifies everything besides the messages that shapes an answer.
    pub(super) identity: String,
    /// Tool hosts that other workers may use as well.
    pub(super) given: Vec<Arc<dyn ToolHost>>,
}

impl ReadyWorker {
    /// Closes what was started for this worker, and the hosts that it was given.
    pub(super) async fn close(&self) {
        self.close_own().await;
        for host in &self.given {
            host.close().await;
        }
    }

    /// Closes only what was started for this worker alone.
    pub(super) async fn close_own(&self) {
        if let Some(tools) = &self.row_worker.tools {
            tools.host.close().await;
        }
        for endpoint in self.row_worker.model_roles.iter().flat_map(|model_role| &model_role.endpoints) {
            endpoint.model.close().await;
        }
    }
}

impl WorkerContext {
    pub(super) fn result_schema(&self) -> Result<Option<ResultSchema>, Problem> {
        let text = self.schema.as_ref().map(ToString::to_string);
        text.map(|text| ResultSchema::parse(&text, "the type of answers")).transpose()
    }

    /// Sets up a worker.
    pub(super) async fn prepare_worker(&self, worker: &Worker) -> Result<ReadyWorker, Problem> {
        let inner = &*worker.inner;
        match &inner.asked {
            WorkerModel::Cards { sources, agent, model, variables } => {
                let flags = AgentOptions {
                    cards: sources.clone(),
                    agent: agent.clone(),
                    model_given: model.is_some(),
                    ..self.work.agents.clone()
                };
                let variables = InstructionVariableOptions {
                    pairs: variables.clone(),
                    ..InstructionVariableOptions::default()
                };
                let model = model.clone().unwrap_or_default();
                self.of_cards(inner, WorkSpec { agents: flags, model, ..self.work.clone() }, &variables).await
            }
            WorkerModel::Model(_) | WorkerModel::Own { .. } => self.of_model(inner),
        }
    }

    async fn of_cards(
        &self,
        inner: &WorkerParts,
        work: WorkSpec,
        variables: &InstructionVariableOptions,
    ) -> Result<ReadyWorker, Problem> {
        if inner.instruction.is_some() || inner.tools.is_some() {
            let message = "an agent card defines its own instruction and tools";
            return Err(Problem::new(ProblemCode::InvalidCard, message)
                .hint("add them to the card, or use `Worker::from_model_name`"));
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
        let maker = ModelFactory::new(&work, &self.http, &self.control)?;
        let settings = AgentSetupSettings {
            schema: self.result_schema()?,
            traced: false,
            redactor: self.redactor.clone(),
        };
        let AgentSetup { graph, model_roles, tools, model, identity, .. } =
            Box::pin(set_up_agents(&work, &maker, &loaded, settings)).await?;
        let row_worker = Arc::new(RowWorker { graph, model_roles, tools });
        Ok(ReadyWorker { row_worker, name: model, identity, given: Vec::new() })
    }

    /// An agent graph of one agent that calls a model, with or without tools.
    fn of_model(&self, inner: &WorkerParts) -> Result<ReadyWorker, Problem> {
        let (card_tools, specs, host, given) =
            match inner.tools.as_ref().map(WorkerTools::prepare).transpose()? {
                Some(ReadyTools { tools, specs, host, given }) => (tools, specs, Some(host), given),
                None => (Vec::new(), Vec::new(), None, Vec::new()),
            };
        let agent = AgentSettings {
            tools: (0..card_tools.len()).collect(),
            max_iterations: if host.is_some() { MAX_ITERATIONS } else { u32::MAX },
            ..AgentSettings::default()
        };
        let member = AgentDefinition {
            name: String::new(),
            description: String::new(),
            kind: AgentKind::Agent(agent),
        };
        let graph = AgentGraph::new(vec![member], card_tools, 0, self.result_schema()?)?;
        let graph = graph
            .with_turns(self.work.agents.turns)
            .with_repairs(self.work.repairs)
            .with_vocabulary(LIBRARY_VOCABULARY);
        let (mut model_roles, mut identity, mut name) = (Vec::new(), String::new(), String::new());
        for index in 0..graph.model_roles().len() {
            let brief = ModelRequirements {
                instruction: system_instruction(&graph, index, inner.instruction.as_deref()),
                schema: graph.schema_for_models(index),
                tools: specs.clone(),
            };
            let ResolvedModel { model_role, model, identity: own } = self.model_role(inner, brief)?;
            model_roles.push(model_role);
            identity = text_digest(&format!("{identity}\n{own}"));
            name = model;
        }
        let result_limit = self.work.agents.tool_result_limit;
        let tools = host.map(|host| ToolSetup { host, hooks: None, result_limit });
        let row_worker = Arc::new(RowWorker { graph: Arc::new(graph), model_roles, tools });
        Ok(ReadyWorker { row_worker, name, identity, given })
    }

    fn model_role(&self, inner: &WorkerParts, brief: ModelRequirements) -> Result<ResolvedModel, Problem> {
        let own = brief_identity(&brief);
        let (model, endpoint) = match &inner.asked {
            WorkerModel::Own { name, make } => {
                let endpoint = self.program_endpoint(inner, name, make(&brief)?)?;
                (name.clone(), ModelEndpoint { identity: text_digest(&format!("{name}\n{own}")), ..endpoint })
            }
            WorkerModel::Model(name) => return self.resolve_provider_model(inner, name, brief),
            WorkerModel::Cards { .. } => {
                return Err(Problem::new(ProblemCode::Internal, "cards have model roles"));
            }
        };
        let files = AttachmentRules { kinds: Vec::new(), max_total: 0, max_count: 0 };
        Ok(ResolvedModel {
            model_role: ModelRoleEndpoints { endpoints: vec![Arc::new(endpoint)], files },
            model,
            identity: own,
        })
    }

    /// The models of a known provider.
    fn resolve_provider_model(
        &self,
        inner: &WorkerParts,
        name: &str,
        brief: ModelRequirements,
    ) -> Result<ResolvedModel, Problem> {
        let maker = ModelFactory::new(&self.work, &self.http, &self.control)?;
        let asks = ModelRequest {
            models: std::iter::once(name.to_owned()).chain(inner.fallbacks.iter().cloned()).collect(),
            instruction: brief.instruction,
            schema: brief.schema,
            tools: brief.tools,
            parallel_tool_calls: None,
            access: Some(ProviderAccess {
                model: name.to_owned(),
                key: inner.key.clone(),
                base_url: inner.base_url.clone(),
            }),
        };
        let ModelEndpoints { model, endpoints, identity, rules, secrets } = maker.endpoints(&asks)?;
        self.redactor.add_secrets(&secrets)?;
        Ok(ResolvedModel {
            model_role: ModelRoleEndpoints { endpoints, files: rules },
            model: model.to_string(),
            identity,
        })
    }

    fn program_endpoint(
        &self,
        inner: &WorkerParts,
        name: &str,
        model: Arc<dyn Model>,
    ) -> Result<ModelEndpoint, Problem> {
        for limits in [self.work.budget, self.work.agents.row_budget] {
            check_own_budget(limits, name, inner)?;
        }
        let share = RunPaceSettings {
            parallel: self.work.parallel,
            pace: self.work.pace,
            rates: self.work.rates,
            max_output: inner.max_output,
            reserves_output: false,
            priming: false,
            max_outage: self.work.max_outage,
        };
        let settings = CallGateSettings { share, on_quota: self.work.on_quota };
        let key =
            EndpointKey { provider: format!("own {name}"), account: String::new(), model: name.to_owned() };
        Ok(ModelEndpoint {
            name: name.to_owned(),
            model,
            gate: self.control.limits.gate(key, settings),
            price: inner.price,
            max_output: inner.max_output,
            // A model of the program need not know about a limit that a request sets.
            output_caps: None,
            batch_terms: None,
            fixed_bytes: 0,
            identity: String::new(),
        })
    }
}

/// A model role, with the name and the identity of its model.
struct ResolvedModel {
    model_role: ModelRoleEndpoints,
    model: String,
    identity: String,
}

/// Checks that the worst-case cost of a call is known if there is a budget, which cannot be kept
/// otherwise.
fn check_own_budget(limits: BudgetLimits, name: &str, inner: &WorkerParts) -> Result<(), Problem> {
    let unknown = |what: &str, method: &str| {
        let message = format!("a spending limit needs {what} of `{name}`, which is not known");
        Problem::new(ProblemCode::UnknownPrice, message).hint(format!("set it with `Worker::{method}`"))
    };
    if limits.cost.is_some() && inner.price.is_none() {
        return Err(unknown("the price", "price"));
    }
    if limits.is_limited() && inner.max_output.is_none() {
        return Err(unknown("the maximum answer length", "max_output"));
    }
    let worst =
        inner.price.zip(inner.max_output).map_or(Money::ZERO, |(price, most)| price.max_cost(0, most));
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
pub(super) fn function_row_worker(model: Arc<dyn Model>, keeps_answers: bool) -> Result<RowWorker, Problem> {
    let anything =
        keeps_answers.then(|| ResultSchema::parse("{}", "the answers of a function")).transpose()?;
    let share = RunPaceSettings {
        // The batch limits the number of items at once, and a function of this process needs no probing
        // with a few calls first, as a provider does.
        parallel: CallParallelism::AtMost(ANY_NUMBER),
        pace: PaceMode::Off,
        rates: MinuteLimits::default(),
        max_output: None,
        reserves_output: false,
        priming: false,
        // A function in this process never has an outage.
        max_outage: Duration::ZERO,
    };
    let settings = CallGateSettings { share, on_quota: OnQuota::Stop };
    let key = EndpointKey { provider: String::new(), account: String::new(), model: String::new() };
    let endpoint = ModelEndpoint {
        name: "function".into(),
        model,
        gate: SharedLimits::default().gate(key, settings),
        price: None,
        max_output: None,
        output_caps: None,
        batch_terms: None,
        fixed_bytes: 0,
        identity: String::new(),
    };
    let files = AttachmentRules { kinds: Vec::new(), max_total: 0, max_count: 0 };
    let model_roles = vec![ModelRoleEndpoints { endpoints: vec![Arc::new(endpoint)], files }];
    Ok(RowWorker { graph: Arc::new(AgentGraph::single_agent(anything, 0)?), model_roles, tools: None })
}

/// What an own model receives with every request, as text that stays the same in later versions.
fn brief_identity(brief: &ModelRequirements) -> String {
    let tools: Vec<String> = brief.tools.iter().map(ToolSpec::identity).collect();
    json!([brief.instruction, brief.schema, tools]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_own_model_gets_counts_by_text_that_no_change_of_the_code_changes() {
        let tool = ToolSpec { name: "look".into(), description: None, schema: json!({}) };
        let brief =
            ModelRequirements { instruction: Some("Be \"brief\".".into()), schema: None, tools: vec![tool] };
        assert_eq!(brief_identity(&brief), r#"["Be \"brief\".",null,["[\"look\",null,{}]"]]"#);
    }
}
