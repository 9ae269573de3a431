//! Sets up agents for the engine: the agent graph, the models of its model roles, and its tools.

use std::sync::Arc;

use rowmill_cards::{AGENT_SKILLS, AgentCard, CardTypeSettings, SERVER_INSTRUCTIONS, StructuredToolPolicy};
use rowmill_core::agent::{
    AgentDefinition, AgentGraph, AgentGraphTool, AgentKind, AgentSettings, AnswerEquality, AnswerFormat,
    AnswerRating, ChildAgent, OrchestratorPlanType, system_instruction,
};
use rowmill_core::fingerprint::text_digest;
use rowmill_core::ports::ToolHost;
use rowmill_core::record::TracedModelRole;
use rowmill_core::redact::Redactor;
use rowmill_core::validate::ResultSchema;
use rowmill_engine::{ModelRoleEndpoints, ToolSetup};
use rowmill_tools::{ParallelLimits, ToolRecorder};
use rowmill_types::{AttachmentRules, Problem, ProblemCode, ToolSpec};
use serde_json::{Value, json};

use super::load::LoadedCards;
use super::models::{model_string_for_card, provider_access_of_card};
use super::tool_offers::{ToolContext, ToolOffers, start_tool_hosts};
use super::tool_routes::ToolRoutes;
use crate::endpoints::{ModelEndpoints, ModelFactory, ModelRequest};
use crate::traces::TracedAgents;
use crate::work_spec::WorkSpec;

/// The default maximum number of model calls in one conversation.
const MAX_ITERATIONS: u32 = 50;
/// The longest tool name that providers accept.
const LONGEST_NAME: usize = 64;

/// Everything that answers rows.
pub(crate) struct AgentSetup {
    pub(crate) graph: Arc<AgentGraph>,
    pub(crate) model_roles: Vec<ModelRoleEndpoints>,
    pub(crate) tools: Option<ToolSetup>,
    /// The model string that represents the run.
    pub(crate) model: String,
    /// Identifies everything besides the messages that shapes an answer.
    pub(crate) identity: String,
    /// Which files can be attached to a row.
    pub(crate) rules: AttachmentRules,
    pub(crate) traced_agents: TracedAgents,
    /// Masks secrets, which must not appear in any file.
    pub(crate) redactor: Redactor,
    /// Reports after the run what could not be recorded.
    pub(crate) recorder: Option<Arc<ToolRecorder>>,
}

/// What agents are set up with, besides their cards.
pub(crate) struct AgentSetupSettings {
    /// The JSON Schema of results.
    pub(crate) schema: Option<ResultSchema>,
    /// Whether messages are kept for traces.
    pub(crate) traced: bool,
    /// Learns the secrets of the agents, which must not appear in any file.
    pub(crate) redactor: Redactor,
}

/// A single model without agents.
pub(super) fn set_up_model(
    spec: &WorkSpec,
    maker: &ModelFactory<'_>,
    asks: &ModelRequest,
    (schema, traced): (Option<ResultSchema>, bool),
) -> Result<AgentSetup, Problem> {
    let ModelEndpoints { model, endpoints, identity, rules, secrets } = maker.endpoints(asks)?;
    let graph = AgentGraph::single_agent(schema, spec.repairs)?
        .with_turns(spec.agents.turns)
        .with_vocabulary(maker.vocabulary());
    let redactor = maker.environment().redactor()?;
    redactor.add_secrets(&secrets)?;
    Ok(AgentSetup {
        graph: Arc::new(graph.keep_transcripts(traced)),
        model_roles: vec![ModelRoleEndpoints { endpoints, files: rules.clone() }],
        tools: None,
        traced_agents: TracedAgents::single_model(model.to_string(), asks.instruction.clone()),
        model: model.to_string(),
        identity,
        rules,
        redactor: redactor.clone(),
        recorder: None,
    })
}

/// Sets up the agents of cards, and starts their tools.
pub(crate) async fn set_up_agents(
    spec: &WorkSpec,
    maker: &ModelFactory<'_>,
    loaded: &LoadedCards,
    settings: AgentSetupSettings,
) -> Result<AgentSetup, Problem> {
    let AgentSetupSettings { schema, traced, redactor } = settings;
    let members = loaded.set.cards_of_worker(&loaded.worker);
    let routes = ToolRoutes::from_options(&spec.agents)?;
    let models: Vec<String> = members
        .iter()
        .map(|card| model_string_for_card(spec, maker, card, members.first().copied()))
        .collect::<Result<_, _>>()?;
    let with = ToolContext { spec, maker, loaded, models: &models, redactor: &redactor };
    let mut offers = start_tool_hosts(with, &members).await?;
    let routes = routes.add_stubs(&mut offers);
    routes.check(&spec.agents, &members, &offers)?;
    let instructions: Vec<Option<String>> = (0..members.len())
        .map(|index| members.get(index).and_then(|card| own_instruction(card, &offers, index)))
        .collect();
    let (hosts, hooks) = (std::mem::take(&mut offers.hosts), offers.hooks.take());
    let graph = graph(spec, &members, &routes, &mut offers, schema)?.keep_transcripts(traced);
    let graph = graph.with_vocabulary(maker.vocabulary());
    let (host, recorder) = host(spec, hosts, std::mem::take(&mut offers.limits), &graph)?;
    let mut setup = AgentSetup {
        model_roles: Vec::new(),
        tools: Some(ToolSetup { host, hooks, result_limit: spec.agents.tool_result_limit }),
        model: models.first().cloned().unwrap_or_default(),
        identity: format!("agents {}", loaded.digest),
        rules: AttachmentRules { kinds: Vec::new(), max_total: 0, max_count: 0 },
        traced_agents: TracedAgents {
            agent: loaded.worker.clone(),
            agents: members.iter().map(|card| card.name.clone()).collect(),
            model_roles: Vec::new(),
        },
        redactor: Redactor::default(),
        recorder,
        graph: Arc::new(graph),
    };
    let graph = Arc::clone(&setup.graph);
    for (index, model_role) in graph.model_roles().iter().enumerate() {
        let agent = model_role.agent_index;
        let (Some(card), Some(model)) = (members.get(agent), models.get(agent)) else { continue };
        let own = instructions.get(model_role.agent_index).and_then(|text| text.as_deref());
        let mut names = vec![model.clone()];
        names.extend(spec.fallback_models.iter().cloned());
        let asks = ModelRequest {
            models: names,
            instruction: system_instruction(&graph, index, own),
            schema: graph.schema_for_models(index),
            tools: tool_specs(&graph, model_role.agent_index, model_role.answer_format, card),
            parallel_tool_calls: card.request.parallel_tool_calls,
            access: provider_access_of_card(card, model),
        };
        let endpoints = maker.endpoints(&asks)?;
        redactor.add_secrets(&endpoints.secrets)?;
        setup.add(index, asks.instruction.clone(), endpoints);
    }
    // The clone can read what was learned so far without a lock.
    setup.redactor = redactor.clone();
    if let Some(recorder) = &setup.recorder {
        recorder.redact_with(setup.redactor.clone());
    }
    Ok(setup)
}

impl AgentSetup {
    fn add(&mut self, index: usize, system: Option<String>, endpoints: ModelEndpoints) {
        let ModelEndpoints { model, endpoints, identity, rules, .. } = endpoints;
        self.identity = text_digest(&format!("{}\n{identity}", self.identity));
        self.traced_agents.model_roles.push(TracedModelRole { model: model.to_string(), system });
        if index == 0 || self.rules.max_count == 0 {
            self.rules = rules.clone();
        }
        self.model_roles.push(ModelRoleEndpoints { endpoints, files: rules });
    }
}

/// One host for all tools, which records their output if requested.
#[expect(clippy::type_complexity, reason = "a host, and the same host where it records")]
fn host(
    spec: &WorkSpec,
    hosts: Vec<(Vec<rowmill_tools::HostToolNames>, Arc<dyn ToolHost>)>,
    limits: ParallelLimits,
    graph: &AgentGraph,
) -> Result<(Arc<dyn ToolHost>, Option<Arc<ToolRecorder>>), Problem> {
    let all = limits.wrap(Arc::new(rowmill_tools::CombinedToolHost::new(hosts)));
    match &spec.agents.record_tools {
        None => Ok((all, None)),
        Some(folder) => {
            // Recorded under the name that `--stub` uses.
            let named = graph.tools().iter().map(|tool| (tool.host_name.clone(), tool.spec.name.clone()));
            let recorder = Arc::new(ToolRecorder::new(all, folder.clone(), named.collect())?);
            Ok((Arc::clone(&recorder) as Arc<dyn ToolHost>, Some(recorder)))
        }
    }
}

/// The card's instruction, with the texts of its servers and skills.
fn own_instruction(card: &AgentCard, offers: &ToolOffers, index: usize) -> Option<String> {
    let servers = offers.server_texts.get(index).map(String::as_str).unwrap_or_default();
    let skills = offers.skill_texts.get(index).and_then(|text| text.as_deref());
    let text = card.instruction.as_ref().map(|text| {
        text.replace(SERVER_INSTRUCTIONS, servers).replace(AGENT_SKILLS, skills.unwrap_or_default())
    });
    let placed = card.instruction.as_ref().is_some_and(|text| text.contains(AGENT_SKILLS));
    match (text, skills.filter(|_| !placed)) {
        (Some(text), Some(skills)) => Some(format!("{text}\n\n{skills}")),
        (None, Some(skills)) => Some(skills.to_owned()),
        (text, None) => text,
    }
}

fn graph(
    spec: &WorkSpec,
    cards: &[&AgentCard],
    routes: &ToolRoutes,
    offers: &mut ToolOffers,
    schema: Option<ResultSchema>,
) -> Result<AgentGraph, Problem> {
    let mut tools = Vec::new();
    let mut members = Vec::new();
    for (index, card) in cards.iter().enumerate() {
        let offered = offers.tools.get_mut(index).map(std::mem::take).unwrap_or_default();
        let first = tools.len();
        for offer in offered {
            let most = routes.max_parallel(card, &offer.spec.name);
            let tool = routes.make_tool(card, offer);
            if let Some(most) = most {
                offers.limits.add([tool.host_name.clone()], most);
            }
            tools.push(tool);
        }
        members.push(AgentDefinition {
            name: card.name.clone(),
            description: card.description.clone().unwrap_or_default(),
            kind: kind(cards, card, first..tools.len())?,
        });
        check_names(card, &tools, members.last())?;
    }
    let graph = AgentGraph::new(members, tools, 0, schema)?;
    Ok(graph.with_turns(spec.agents.turns).with_repairs(spec.repairs))
}

/// Checks that no two tools of one agent have the same name.
fn check_names(
    card: &AgentCard,
    tools: &[AgentGraphTool],
    member: Option<&AgentDefinition>,
) -> Result<(), Problem> {
    let Some(AgentKind::Agent(agent)) = member.map(|member| &member.kind) else { return Ok(()) };
    let own = agent.tools.iter().filter_map(|&index| tools.get(index)).map(|tool| tool.spec.name.as_str());
    let mut seen = std::collections::BTreeSet::new();
    for name in own.chain(agent.children.iter().map(|child| child.spec.name.as_str())) {
        if !seen.insert(name) {
            let message = format!("`{}` has two tools with the name `{name}`", card.source);
            return Err(Problem::new(ProblemCode::InvalidCard, message)
                .hint("rename one of them, or exclude one with a filter"));
        }
    }
    Ok(())
}

fn kind(cards: &[&AgentCard], card: &AgentCard, tools: std::ops::Range<usize>) -> Result<AgentKind, Problem> {
    let place = |name: &String| cards.iter().position(|other| other.name == *name).unwrap_or_default();
    let places = |names: &Vec<String>| names.iter().map(place).collect::<Vec<_>>();
    Ok(match &card.kind {
        CardTypeSettings::Agent { agents } => {
            let children = agents.iter().map(|name| child(cards, place(name))).collect::<Result<_, _>>()?;
            AgentKind::Agent(agent(card, tools, children))
        }
        CardTypeSettings::Chain { sequence, cumulative } => {
            AgentKind::Chain { sequence: places(sequence), cumulative: *cumulative }
        }
        CardTypeSettings::Parallel { fan_out, fan_in, include_request } => AgentKind::Parallel {
            fan_out: places(fan_out),
            fan_in: fan_in.as_ref().map(place),
            include_request: *include_request,
        },
        CardTypeSettings::EvaluatorOptimizer {
            generator,
            evaluator,
            min_rating,
            max_refinements,
            refinement_instruction,
        } => AgentKind::EvaluatorOptimizer {
            generator: place(generator),
            evaluator: place(evaluator),
            min_rating: rating(*min_rating),
            max_refinements: *max_refinements,
            instruction: refinement_instruction.clone(),
        },
        CardTypeSettings::Router { agents } => AgentKind::Router { agents: places(agents) },
        CardTypeSettings::Orchestrator { agents, plan_type, plan_iterations } => AgentKind::Orchestrator {
            agents: places(agents),
            plan: match plan_type {
                rowmill_cards::OrchestratorPlanType::Full => OrchestratorPlanType::Full,
                rowmill_cards::OrchestratorPlanType::Iterative => OrchestratorPlanType::Iterative,
            },
            iterations: plan_iterations.map(Into::into),
        },
        CardTypeSettings::IterativePlanner { agents, plan_iterations } => AgentKind::Orchestrator {
            agents: places(agents),
            plan: OrchestratorPlanType::Iterative,
            iterations: plan_iterations.map(Into::into),
        },
        CardTypeSettings::Maker { worker, k, max_samples, match_strategy, red_flag_max_length } => {
            AgentKind::Maker {
                worker: place(worker),
                k: *k,
                max_samples: *max_samples,
                matching: match match_strategy {
                    rowmill_cards::AnswerEquality::Exact => AnswerEquality::Exact,
                    rowmill_cards::AnswerEquality::Normalized => AnswerEquality::Normalized,
                    rowmill_cards::AnswerEquality::Structured => AnswerEquality::Structured,
                },
                red_flag_max_length: red_flag_max_length.map(|most| most as usize),
            }
        }
    })
}

fn agent(card: &AgentCard, tools: std::ops::Range<usize>, children: Vec<ChildAgent>) -> AgentSettings {
    AgentSettings {
        tools: tools.collect(),
        children,
        max_iterations: card.request.max_iterations.map_or(MAX_ITERATIONS, Into::into),
        max_parallel: card.max_parallel.map(|most| u32::from(most) as usize),
        child_timeout: card.child_timeout,
        sequential_calls: card.request.parallel_tool_calls == Some(false),
        examples: card.history.clone(),
    }
}

fn rating(rating: rowmill_cards::AnswerRating) -> AnswerRating {
    match rating {
        rowmill_cards::AnswerRating::Poor => AnswerRating::Poor,
        rowmill_cards::AnswerRating::Fair => AnswerRating::Fair,
        rowmill_cards::AnswerRating::Good => AnswerRating::Good,
        rowmill_cards::AnswerRating::Excellent => AnswerRating::Excellent,
    }
}

/// An agent in the form in which it is offered to another one.
fn child(cards: &[&AgentCard], place: usize) -> Result<ChildAgent, Problem> {
    let Some(card) = cards.get(place) else {
        return Err(Problem::new(ProblemCode::Internal, "a child is not among the members"));
    };
    let schema = card.tool_input_schema.clone().map_or_else(
        || {
            json!({
                "type": "object",
                "properties": {"message": {"type": "string", "description": "What the agent is asked."}},
                "required": ["message"],
                "additionalProperties": false
            })
        },
        Value::Object,
    );
    let legal =
        |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '_' };
    let name: String = card.name.chars().map(legal).take(LONGEST_NAME).collect();
    let description = card.description.clone().or_else(|| Some(format!("Asks the agent {}.", card.name)));
    Ok(ChildAgent {
        agent_index: place,
        arguments: ResultSchema::parse(&schema.to_string(), &name).ok(),
        spec: ToolSpec { name, description, schema },
    })
}

/// The tools that a model role offers its model.
fn tool_specs(graph: &AgentGraph, member: usize, form: AnswerFormat, card: &AgentCard) -> Vec<ToolSpec> {
    let no_tools = card.request.structured_tool_policy == StructuredToolPolicy::NoTools;
    match graph.agents().get(member).map(|member| &member.kind) {
        Some(AgentKind::Agent(agent)) if !(no_tools && form != AnswerFormat::Text) => {
            let own = agent.tools.iter().filter_map(|&tool| graph.tools().get(tool)).map(|tool| &tool.spec);
            own.chain(agent.children.iter().map(|child| &child.spec)).cloned().collect()
        }
        _ => Vec::new(),
    }
}
